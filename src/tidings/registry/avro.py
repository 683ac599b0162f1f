"""What a topic with Avro payloads says of its schemas: every version that ever was, because old events were written by it."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tidings.events.avro.names import fingerprint


class Compatibility(StrEnum):
    """Which schemas a new version must agree with. Backward: it reads what the newest one wrote; forward: the newest one reads
    what it writes; transitive: not only the newest, every one."""

    NONE = "none"
    BACKWARD = "backward"
    FORWARD = "forward"
    FULL = "full"
    BACKWARD_TRANSITIVE = "backward-transitive"
    FORWARD_TRANSITIVE = "forward-transitive"
    FULL_TRANSITIVE = "full-transitive"


class AvroVersion(msgspec.Struct, frozen=True):
    """One schema by its number. 0: new, the registry gives it the next number."""

    number: int
    schema: str


class AvroPayload(msgspec.Struct, frozen=True, kw_only=True):
    """The schemas of a topic, oldest first. Publishers write by the newest unless they name another."""

    versions: tuple[AvroVersion, ...]
    compatibility: Compatibility = Compatibility.BACKWARD

    @property
    def newest(self) -> AvroVersion:
        return self.versions[-1]

    def version(self, number: int) -> AvroVersion | None:
        """The schema of this number."""
        return next((one for one in self.versions if one.number == number), None)

    def number_of(self, written_by: str) -> int | None:
        """The number of the schema with this fingerprint."""
        return next((one.number for one in self.versions if fingerprint(one.schema) == written_by), None)
