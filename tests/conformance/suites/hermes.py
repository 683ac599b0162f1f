"""Hermes' vectors: messages with chains of jsonpath, avropath and header filters, in the format of `hermes.json`."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec

from tests.conformance.suites import JAVA_REGEX, Case, Difference, NotThisFormat, case_of
from tidings.errors import FilterSyntaxError, Malformed
from tidings.events.avro.payloads import SchemaBook
from tidings.events.avro.schema import AvroSchema, compiled
from tidings.events.model import Event
from tidings.filters import matches, parse

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
        payload, schema = message_of(vector, schemas)
    except Malformed:
        return ERROR
    if schema is None:
        return MATCHED if matches(chain, event_of(vector, payload)) else NOT_MATCHED
    event = msgspec.structs.replace(event_of(vector, payload), avro=schema.fingerprint)
    return MATCHED if matches(chain, event, SchemaBook([schema.text])) else NOT_MATCHED


def event_of(vector: dict[str, Any], payload: bytes) -> Event:
    attributes = {"specversion": "1.0", "id": "1", "source": "/hermes", "type": "message"}
    return Event(attributes, payload, transport=vector.get("headers") or {})


def payload_of(vector: dict[str, Any]) -> bytes:
    if vector.get("message_base64") is not None:
        return base64.b64decode(vector["message_base64"])
    message = vector.get("message")
    return str(message).encode() if vector.get("message_is_raw_text") else _encode(message)


def message_of(vector: dict[str, Any], schemas: dict[str, Any]) -> tuple[bytes, AvroSchema | None]:
    """The bytes that were published, and the schema that they were written by, where the vector names one. Raises Malformed."""
    if vector.get("schema") is None:
        return payload_of(vector), None
    schema = compiled(_encode(schemas[vector["schema"]]).decode())
    if vector.get("message_base64") is None and not vector.get("message_is_raw_text"):
        return schema.from_json(payload_of(vector)), schema
    data = payload_of(vector)
    schema.check(data)
    return data, schema
