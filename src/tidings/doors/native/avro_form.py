"""Whether a reader of events gets Avro payloads as JSON, or the bytes that are stored."""

from __future__ import annotations

from typing import Literal, TypeAlias

from fastapi import Query

from tidings.doors.api_parts import ApiParts
from tidings.events.avro.payloads import NO_SCHEMAS, SchemaBook

AvroForm: TypeAlias = Literal["json", "bytes"]

AVRO_FORM: AvroForm = Query("json", description="Avro payloads as `json`, or as the `bytes` that are stored (data_base64).")


def schemas_for(parts: ApiParts, form: AvroForm) -> SchemaBook:
    """The schemas by which payloads are shown as JSON; none where the bytes were asked for."""
    return parts.current.schemas if form == "json" else NO_SCHEMAS
