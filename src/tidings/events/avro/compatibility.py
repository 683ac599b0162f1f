"""Whether what one schema wrote can be read by another, as the Avro specification resolves schemas.

A reader's field that the writer has not needs a default; numbers may widen; string and bytes are read as one another; an enum
needs every symbol or a default; names count without their namespaces, and the reader's aliases count too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tidings.errors import Malformed
from tidings.events.avro.tree import (
    NO_DEFAULT,
    AvroArray,
    AvroEnum,
    AvroFixed,
    AvroMap,
    AvroNode,
    AvroPrimitive,
    AvroRecord,
    AvroTree,
    AvroUnion,
    branch_name,
)

_WIDER: Mapping[str, tuple[str, ...]] = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}
_MOST_PAIRS = 100_000


def unreadable(reader: AvroTree, writer: AvroTree) -> str:
    """Why a reader cannot read everything that the writer's schema can write, with the place; empty: it can.

    Raises Malformed where comparing them would take too long.
    """
    return next(_Comparison().faults(reader.root, writer.root, ""), "")


class _Comparison:
    """Compares each pair of records once: a pair that is being compared is taken for readable."""

    def __init__(self) -> None:
        self._known: dict[tuple[AvroNode, AvroNode], bool] = {}
        self._pairs = 0

    def faults(self, reader: AvroNode, writer: AvroNode, at: str) -> Iterator[str]:
        self._pairs += 1
        if self._pairs > _MOST_PAIRS:
            raise Malformed("the schemas cannot be compared: they have too many types")
        if isinstance(writer, AvroUnion):
            for branch in writer.branches:
                yield from self.faults(reader, branch, at)
            return
        if isinstance(reader, AvroUnion):
            if not any(self._reads(branch, writer) for branch in reader.branches):
                yield f"{_place(at)}: the union has no branch that reads {branch_name(writer)}"
            return
        match reader, writer:
            case AvroPrimitive(wanted), AvroPrimitive(word):
                if wanted != word and wanted not in _WIDER.get(word, ()):
                    yield f"{_place(at)}: {word} cannot be read as {wanted}"
            case AvroArray(items), AvroArray(written):
                yield from self.faults(items, written, f"{at}/items")
            case AvroMap(values), AvroMap(written):
                yield from self.faults(values, written, f"{at}/values")
            case AvroFixed(), AvroFixed():
                yield from _named(reader, writer, at)
                if reader.size != writer.size:
                    yield f"{_place(at)}: {writer.size} bytes cannot be read as {reader.size}"
            case AvroEnum(), AvroEnum():
                yield from _named(reader, writer, at)
                missing = [symbol for symbol in writer.symbols if symbol not in reader.symbols]
                if missing and reader.default is None:
                    yield f"{_place(at)}: the enum lacks the symbol {missing[0]} and has no default"
            case AvroRecord(), AvroRecord():
                yield from self._records(reader, writer, at)
            case _:
                yield f"{_place(at)}: {branch_name(writer)} cannot be read as {branch_name(reader)}"

    def _reads(self, reader: AvroNode, writer: AvroNode) -> bool:
        """Whether this branch reads it. Looked up again where the same pair was compared to its end."""
        if (reader, writer) not in self._known:
            fits = next(self.faults(reader, writer, ""), None) is None
            self._known[reader, writer] = fits
        return self._known[reader, writer]

    def _records(self, reader: AvroRecord, writer: AvroRecord, at: str) -> Iterator[str]:
        yield from _named(reader, writer, at)
        if (reader, writer) in self._known:
            if not self._known[reader, writer]:
                yield f"{_place(at)}: {writer.name} cannot be read as {reader.name}"
            return
        self._known[reader, writer] = True
        written = {field.name: field for field in writer.fields}
        for field in reader.fields:
            found = next((written[name] for name in (field.name, *field.aliases) if name in written), None)
            if found is not None:
                for fault in self.faults(field.type, found.type, f"{at}/{field.name}"):
                    self._known[reader, writer] = False
                    yield fault
            elif field.default is NO_DEFAULT:
                self._known[reader, writer] = False
                yield f"{_place(at)}: the field {field.name} is new and has no default"


def _named(reader: AvroRecord | AvroEnum | AvroFixed, writer: AvroRecord | AvroEnum | AvroFixed, at: str) -> Iterator[str]:
    short = writer.name.rpartition(".")[2]
    if short != reader.name.rpartition(".")[2] and writer.name not in reader.aliases:
        yield f"{_place(at)}: {writer.name} cannot be read as {reader.name}"


def _place(at: str) -> str:
    return at or "the top"
