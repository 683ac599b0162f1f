"""The field `__metadata` of Hermes' messages: null or a map of text, which the hub fills in when a message is published."""

from __future__ import annotations

from collections.abc import Mapping

from tidings.events.avro.binary import Skips, Walk
from tidings.events.avro.encoding import write_long
from tidings.events.avro.tree import AvroField, AvroMap, AvroNode, AvroPrimitive, AvroRecord, AvroUnion

METADATA = "__metadata"


def metadata_field(root: AvroNode) -> AvroField | None:
    """The field, where the schema is a record that has it."""
    if not isinstance(root, AvroRecord):
        return None
    return next((field for field in root.fields if field.name == METADATA), None)


def metadata_fault(root: AvroNode) -> str:
    """Why messages of this schema cannot carry metadata (HER-30); empty: they can."""
    field = metadata_field(root)
    if field is None:
        return f"the schema has no field {METADATA}"
    if not isinstance(field.type, AvroUnion) or len(field.type.branches) != 2 or _map_branch(field.type) is None:
        return f"the field {METADATA} is not a union of null and a map of string"
    return ""


def _map_branch(union: AvroUnion) -> int | None:
    """The number of the map of text, where the other branch is null."""
    kinds = [branch for branch in union.branches if branch != AvroPrimitive("null")]
    text = AvroPrimitive("string")
    found = next((n for n, one in enumerate(union.branches) if isinstance(one, AvroMap) and one.values == text), None)
    return found if len(kinds) == 1 else None


class MetadataSlot:
    """Where in a payload the metadata is: behind the fields before it. The other bytes stay as they are."""

    def __init__(self, record: AvroRecord, skips: Skips) -> None:
        fields = [field.name for field in record.fields]
        place = fields.index(METADATA)
        self._before = [skips.of(field.type) for field in record.fields[:place]]
        union = record.fields[place].type
        assert isinstance(union, AvroUnion)
        self._own = skips.of(union)
        branch = _map_branch(union)
        assert branch is not None
        self._branch = branch

    def filled(self, data: bytes, metadata: Mapping[str, str]) -> bytes:
        """The payload with this metadata instead of what it has. Raises AvroMismatch where it cannot be read up to there."""
        walk = Walk(data)
        begin = 0
        for skip in self._before:
            begin = skip(walk, begin)
        end = self._own(walk, begin)
        out = bytearray(data[:begin])
        write_long(self._branch, out)
        if metadata:
            write_long(len(metadata), out)
            for name, text in metadata.items():
                for part in (name.encode(), text.encode()):
                    write_long(len(part), out)
                    out += part
        out.append(0)
        return bytes(out + data[end:])
