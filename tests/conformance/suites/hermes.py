"""Hermes' vectors: messages with chains of jsonpath, avropath and header filters, in the format of `hermes.json`."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import msgspec

from tests.conformance.suites import JAVA_REGEX, Case, Difference, NotThisFormat, case_of
from tidings.errors import FilterSyntaxError
from tidings.events.model import Event
from tidings.filters import parse
from tidings.filters.matches import holds, reading
from tidings.filters.payload import MISSING

MATCHED, NOT_MATCHED, ERROR = "MATCHED", "NOT_MATCHED", "ERROR"
_encode = msgspec.json.Encoder(decimal_format="number").encode


def cases(file: Path) -> Iterator[Case]:
    document = json.loads(file.read_text("utf-8"), parse_float=Decimal)
    if not isinstance(document, dict) or not isinstance(document.get("vectors"), list):
        raise NotThisFormat("it has no list `vectors`")
    schemas = document.get("schemas") or {}
    for number, vector in enumerate(document["vectors"]):
        yield case_of(vector, f"{number}-{kinds_in(vector)}", lambda vector: difference(vector, schemas))


def kinds_in(vector: object) -> str:
    """The kinds of filters in the chain, for the name of a case that has none."""
    chain = vector.get("filters") if isinstance(vector, dict) else None
    kinds = [str(one.get("type")) for one in chain if isinstance(one, dict)] if isinstance(chain, list) else []
    return "-".join(kinds) or "none"


def difference(vector: dict[str, Any], schemas: dict[str, Any]) -> Difference | None:
    got = verified(vector, schemas)
    wanted = vector.get("expectedVerificationStatus")
    if wanted is not None and got != wanted:
        return wanted, got
    if vector.get("throws") or vector["expected"] is None:
        return None if got != MATCHED else ("no match", got)
    return None if (got == MATCHED) is vector["expected"] else (vector["expected"], got)


def verified(vector: dict[str, Any], schemas: dict[str, Any]) -> str:
    """What trying the chain on the message comes to."""
    try:
        chain = parse("hermes", vector["filters"], JAVA_REGEX)
    except FilterSyntaxError:
        return ERROR
    try:
        payload, decoded = message_of(vector, schemas)
    except NotAvro:
        return ERROR
    return MATCHED if holds(chain, reading(event_of(vector, payload), decoded)) else NOT_MATCHED


def event_of(vector: dict[str, Any], payload: bytes) -> Event:
    attributes = {"specversion": "1.0", "id": "1", "source": "/hermes", "type": "message"}
    return Event(attributes, payload, transport=vector.get("headers") or {})


def payload_of(vector: dict[str, Any]) -> bytes:
    if vector.get("message_base64") is not None:
        return base64.b64decode(vector["message_base64"])
    message = vector.get("message")
    return str(message).encode() if vector.get("message_is_raw_text") else _encode(message)


class NotAvro(Exception):
    """The message is no value of its schema."""


def message_of(vector: dict[str, Any], schemas: dict[str, Any]) -> tuple[bytes, object]:
    """The bytes that were published, and what they hold as Avro: MISSING when the vector names no schema."""
    if vector.get("schema") is None:
        return payload_of(vector), MISSING
    schema = fastavro.parse_schema(schemas[vector["schema"]])
    try:
        written = BytesIO()
        if vector.get("message_base64") is not None or vector.get("message_is_raw_text"):
            written.write(payload_of(vector))
        else:
            fastavro.schemaless_writer(written, schema, msgspec.json.decode(payload_of(vector)))
        written.seek(0)
        value: object = fastavro.schemaless_reader(written, schema, None)
    except Exception as error:  # fastavro has no one kind of error for what it cannot read
        raise NotAvro(str(error)) from error
    if written.read(1):
        raise NotAvro("bytes are left")
    return written.getvalue(), value
