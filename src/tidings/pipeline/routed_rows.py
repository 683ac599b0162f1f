"""The rows that routing gives back: runs of lane entries, parts, what was set aside, and how far was read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from tidings.lanes.parts import WHOLE
from tidings.log.position import Partition

ENTRIES, ASIDE, SCANNED, PART, COUNTED = 0, 1, 2, 3, 4
"""ENTRIES: entries of a lane. ASIDE: entry `first` could not be routed (to `lane`, or to any). SCANNED: (first, last] was read.
PART: what projections left of entry `first`, kept under the one key in `keys`. COUNTED: `first` more of `reason`."""

_encode = msgspec.msgpack.Encoder().encode

MERGED = 8192
"""Entries of a merged run at the most: delivery reads a whole run to find one entry."""


class RoutedRow(NamedTuple):
    """One finding of routing. Which partition its offsets are of stands beside the rows."""

    kind: int
    lane: int | None
    first: int
    last: int
    offsets: bytes = b""
    keys: bytes | None = None
    data: bytes | None = None
    reason: str | None = None

    @property
    def entries(self) -> int:
        return len(self.offsets) // 8


class RoutedRange(NamedTuple):
    """What was found in one range."""

    partition: Partition
    rows: list[RoutedRow]


_decode = msgspec.msgpack.Decoder(RoutedRange).decode


def entries(lane: int, offsets: Any, keys: bytes | None = None) -> RoutedRow:
    """Entries of a lane at these rising offsets, an array."""
    return RoutedRow(ENTRIES, lane, int(offsets[0]), int(offsets[-1]), offsets.astype("<i8").tobytes(), keys)


def part(offset: int, key: bytes, data: bytes) -> RoutedRow:
    """What projections left of an entry."""
    return RoutedRow(PART, None, offset, offset, keys=key, data=data)


def aside(lane: int | None, offset: int, reason: str) -> RoutedRow:
    """An entry that could not be routed, to this lane or to any."""
    return RoutedRow(ASIDE, lane, offset, offset, reason=reason)


def span(after: int, upto: int) -> RoutedRow:
    """What was read: everything in (after, upto]."""
    return RoutedRow(SCANNED, None, after, upto)


def counted(figure: str, number: int) -> RoutedRow:
    """So many more of something that is counted for the operator."""
    return RoutedRow(COUNTED, None, number, number, reason=figure)


def size(row: RoutedRow) -> int:
    """The bytes that the row holds beside its numbers."""
    return len(row.offsets) + len(row.keys or b"") + len(row.data or b"")


def encoded(found: RoutedRange) -> bytes:
    """What was found, as it travels from a worker."""
    return _encode(found)


def decoded(raw: bytes) -> RoutedRange:
    """What `encoded` made."""
    return _decode(raw)


def merged(runs: Iterable[RoutedRow]) -> Iterator[tuple[int, RoutedRow]]:
    """The same entries in fewer runs, each with its lane, ordered by lane and offset. Every lane then costs about one row."""
    lanes: dict[int, list[RoutedRow]] = defaultdict(list)
    for row in runs:
        if row.lane is not None:
            lanes[row.lane].append(row)
    for lane, rows in sorted(lanes.items()):
        for together in _together(sorted(rows, key=_first)):
            yield lane, _joined(together)


def _first(row: RoutedRow) -> int:
    return row.first


def _together(rows: Iterable[RoutedRow]) -> Iterator[list[RoutedRow]]:
    held: list[RoutedRow] = []
    entries = 0
    for row in rows:
        if held and entries + row.entries > MERGED:
            yield held
            held, entries = [], 0
        held.append(row)
        entries += row.entries
    yield held


def _joined(rows: Sequence[RoutedRow]) -> RoutedRow:
    if len(rows) == 1:
        return rows[0]
    offsets = b"".join(row.offsets for row in rows)
    keys = None
    if any(row.keys is not None for row in rows):
        keys = b"".join(row.keys if row.keys is not None else WHOLE * row.entries for row in rows)
    return RoutedRow(ENTRIES, rows[0].lane, rows[0].first, rows[-1].last, offsets, keys)
