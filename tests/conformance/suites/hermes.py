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

from tests.conformance.suites import Case, Difference, NotThisFormat
from tidings.errors import FilterSyntaxError
from tidings.events.model import Event
from tidings.filters import parse
from tidings.filters.meaning import holds, reading
from tidings.filters.payload import MISSING

MATCHED, NOT_MATCHED, ERROR = "MATCHED", "NOT_MATCHED", "ERROR"
_encode = msgspec.json.Encoder(decimal_format="number").encode


def cases(file: Path) -> Iterator[Case]:
    document = json.loads(file.read_text("utf-8"), parse_float=Decimal)
    if not isinstance(document, dict) or not isinstance(document.get("vectors"), list):
        raise NotThisFormat("it has no list `vectors`")
    schemas = {name: fastavro.parse_schema(schema) for name, schema in document.get("schemas", {}).items()}
    for number, vector in enumerate(document["vectors"]):
        name = vector.get("id") or f"{number}-{'-'.join(one['type'] for one in vector['filters']) or 'none'}"
        yield Case(name, lambda vector=vector: difference(vector, schemas))  # type: ignore[misc]


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
        chain = parse("hermes", vector["filters"])
    except FilterSyntaxError:
        return ERROR
    try:
        decoded = avro_of(vector, schemas)
    except NotAvro:
        return ERROR
    return MATCHED if holds(chain, reading(event_of(vector), decoded)) else NOT_MATCHED


def event_of(vector: dict[str, Any]) -> Event:
    attributes = {"specversion": "1.0", "id": "1", "source": "/hermes", "type": "message"}
    return Event(attributes, payload_of(vector), transport=vector.get("headers", {}))


def payload_of(vector: dict[str, Any]) -> bytes:
    if "message_base64" in vector:
        return base64.b64decode(vector["message_base64"])
    message = vector.get("message")
    return message.encode() if vector.get("message_is_raw_text") else _encode(message)


class NotAvro(Exception):
    """The message is no value of its schema."""


def avro_of(vector: dict[str, Any], schemas: dict[str, Any]) -> object:
    """The message, written as Avro and read again; MISSING when it is none."""
    if "schema" not in vector:
        return MISSING
    schema = schemas[vector["schema"]]
    try:
        if "message_base64" in vector or vector.get("message_is_raw_text"):
            written = BytesIO(payload_of(vector))
        else:
            written = BytesIO()
            fastavro.schemaless_writer(written, schema, msgspec.json.decode(payload_of(vector)))
            written.seek(0)
        value: object = fastavro.schemaless_reader(written, schema, None)
    except Exception as error:  # fastavro has no one kind of error for what it cannot read
        raise NotAvro(str(error)) from error
    if written.read(1):
        raise NotAvro("bytes are left")
    return value
