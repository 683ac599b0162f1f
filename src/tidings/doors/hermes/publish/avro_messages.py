"""Messages of Avro topics (HER-68): Avro as it is, or made of JSON, with what Hermes says of each message in `__metadata`. Pure."""

from __future__ import annotations

from tidings.doors.hermes.refusals import ErrorCode, refused
from tidings.errors import Malformed
from tidings.events.avro.payloads import AVRO_BINARY, AVRO_JSON
from tidings.events.avro.schema import AvroSchema
from tidings.events.content_types import essence_of
from tidings.events.headers import RawHeaders, content_type_of
from tidings.ingest.avro_payloads import AdmittedAvro

SCHEMA_VERSION = b"schema-version"
_TYPES = f"application/json, {AVRO_JSON} or {AVRO_BINARY}"


def schema_for(avro: AdmittedAvro, headers: RawHeaders) -> AvroSchema:
    """The schema that a publisher writes by: of the version it names, else the newest. What is no number is ignored."""
    named = next((value.decode("latin-1").strip() for name, value in headers if name == SCHEMA_VERSION), "")
    number = int(named) if named.isascii() and named.isdecimal() and len(named) < 10 else None
    try:
        return avro.version(number)
    except Malformed as error:
        raise refused(ErrorCode.SCHEMA_VERSION_DOES_NOT_EXIST, str(error)) from error


def avro_payload(schema: AvroSchema, headers: RawHeaders, body: bytes, message: str, milliseconds: int) -> bytes:
    """The message as Avro binary. Raises HermesRefused for another content type, Malformed for what does not fit the schema."""
    kind = essence_of(content_type_of(headers))
    match kind:
        case "application/json":
            data = schema.from_json(body)
        case "avro/json":
            data = schema.from_avro_json(body)
        case "avro/binary":
            schema.check(body)
            data = body
        case _:
            told = f"an Avro topic takes {_TYPES}, not {kind or 'a message without Content-Type'}"
            raise refused(ErrorCode.VALIDATION_ERROR, f"Invalid message: {told}")
    return schema.with_metadata(data, {"messageId": message, "timestamp": str(milliseconds)})
