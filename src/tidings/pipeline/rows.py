"""The rows that routing gives back: blocks of lane entries, bodies, what was set aside, and how far was read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType

from tidings.log.block import REFERENCE

BLOCK, ASIDE, SCANNED, BODY, COUNTED = 0, 1, 2, 3, 4

ROUTED_SCHEMA = StructType(
    [
        StructField("kind", IntegerType()),
        StructField("lane", IntegerType()),
        StructField("first", LongType()),
        StructField("last", LongType()),
        StructField("offsets", BinaryType()),
        StructField("digests", BinaryType()),
        StructField("body", BinaryType()),
        StructField("reason", StringType()),
    ]
)
"""BLOCK: entries of a lane. ASIDE: entry `first` could not be routed (to `lane`, or to any). SCANNED: (first, last] was read.
BODY: what projections left of entry `first`, kept under the one digest in `digests`. COUNTED: `first` more of `reason`."""

ROUTED_ARROW = pa.schema(
    [
        ("kind", pa.int32()),
        ("lane", pa.int32()),
        ("first", pa.int64()),
        ("last", pa.int64()),
        ("offsets", pa.binary()),
        ("digests", pa.binary()),
        ("body", pa.binary()),
        ("reason", pa.string()),
    ]
)

MERGED = 8192
"""Entries of a merged block at the most: delivery reads a whole block to find one entry."""


class Row(NamedTuple):
    """One row of ROUTED_SCHEMA."""

    kind: int
    lane: int | None
    first: int
    last: int
    offsets: bytes = b""
    digests: bytes | None = None
    body: bytes | None = None
    reason: str | None = None

    @property
    def entries(self) -> int:
        return len(self.offsets) // 8


def block(lane: int, offsets: Any, digests: bytes | None = None) -> Row:
    """Entries of a lane at these rising offsets, an array."""
    return Row(BLOCK, lane, int(offsets[0]), int(offsets[-1]), offsets.astype("<i8").tobytes(), digests)


def body(offset: int, digest: bytes, data: bytes) -> Row:
    """What projections left of an entry."""
    return Row(BODY, None, offset, offset, digests=digest, body=data)


def aside(lane: int | None, offset: int, reason: str) -> Row:
    """An entry that could not be routed, to this lane or to any."""
    return Row(ASIDE, lane, offset, offset, reason=reason)


def span(after: int, upto: int) -> Row:
    """What was read: everything in (after, upto]."""
    return Row(SCANNED, None, after, upto)


def counted(figure: str, number: int) -> Row:
    """So many more of something that is counted for the operator."""
    return Row(COUNTED, None, number, number, reason=figure)


def size(row: Row) -> int:
    """The bytes that the row holds beside its numbers."""
    return len(row.offsets) + len(row.digests or b"") + len(row.body or b"")


def as_arrow(rows: Sequence[Row]) -> pa.RecordBatch:
    """The rows as Spark takes them."""
    columns = zip(*rows, strict=True)
    return pa.record_batch(
        [pa.array(column, field.type) for column, field in zip(columns, ROUTED_ARROW, strict=True)], schema=ROUTED_ARROW
    )


def from_arrow(table: pa.Table) -> list[Row]:
    """The rows as Spark gave them back."""
    return list(map(Row._make, zip(*(column.to_pylist() for column in table.columns), strict=True)))


def merged(blocks: Iterable[Row]) -> Iterator[tuple[int, Row]]:
    """The same entries in fewer blocks, each with its lane, ordered by lane and offset. Every lane then costs about one row."""
    lanes: dict[int, list[Row]] = defaultdict(list)
    for row in blocks:
        if row.lane is not None:
            lanes[row.lane].append(row)
    for lane, rows in sorted(lanes.items()):
        for together in _together(sorted(rows, key=_first)):
            yield lane, _joined(together)


def _first(row: Row) -> int:
    return row.first


def _together(rows: Iterable[Row]) -> Iterator[list[Row]]:
    held: list[Row] = []
    entries = 0
    for row in rows:
        if held and entries + row.entries > MERGED:
            yield held
            held, entries = [], 0
        held.append(row)
        entries += row.entries
    yield held


def _joined(rows: Sequence[Row]) -> Row:
    if len(rows) == 1:
        return rows[0]
    offsets = b"".join(row.offsets for row in rows)
    digests = None
    if any(row.digests is not None for row in rows):
        digests = b"".join(row.digests if row.digests is not None else REFERENCE * row.entries for row in rows)
    return Row(BLOCK, rows[0].lane, rows[0].first, rows[-1].last, offsets, digests)
