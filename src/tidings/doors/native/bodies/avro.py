"""The Avro schemas of a topic as they are written and shown."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from pydantic import Field

from tidings.doors.native.bodies.wire import Wire
from tidings.registry.avro import AvroPayload, AvroVersion, Compatibility

CompatibilityWord = Literal[
    "none", "backward", "forward", "full", "backward-transitive", "forward-transitive", "full-transitive"
]


class AvroBody(Wire):
    """Payloads are Avro binary; JSON is converted when it is published. A schema that is new becomes the next version."""

    avro_schema: Any = Field(alias="schema", description="The Avro schema, as JSON.")
    compatibility: CompatibilityWord = Field(
        default="backward",
        description="What a new schema must agree with: backward, it reads what the newest version wrote; forward, the newest "
        "version reads what it writes; full, both; transitive, all versions and not only the newest.",
    )
    version: int | None = Field(default=None, description="The number of the schema; the hub gives it.")


class SchemaVersionView(Wire):
    """One version of an Avro schema."""

    version: int
    avro_schema: Any = Field(alias="schema")


def avro_from(body: AvroBody) -> AvroPayload:
    """The schemas that a body describes: the registry adds those in force."""
    text = msgspec.json.encode(body.avro_schema).decode()
    return AvroPayload(versions=(AvroVersion(0, text),), compatibility=Compatibility(body.compatibility))


def avro_view(avro: AvroPayload) -> AvroBody:
    """The newest schema as it is shown."""
    newest = version_view(avro.newest)
    return AvroBody(schema=newest.avro_schema, compatibility=avro.compatibility.value, version=newest.version)


def version_view(one: AvroVersion) -> SchemaVersionView:
    """One version as it is shown."""
    return SchemaVersionView(version=one.number, schema=msgspec.json.decode(one.schema))
