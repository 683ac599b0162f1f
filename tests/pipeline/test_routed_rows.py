"""The rows of routing: merged into fewer blocks without losing an entry, its order or its digest."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.lanes.parts import KEY_BYTES, WHOLE
from tidings.log.position import Partition
from tidings.pipeline.routed_rows import (
    MERGED,
    RoutedRange,
    RoutedRow,
    aside,
    decoded,
    encoded,
    entries,
    merged,
    part,
    span,
)

PIECES = st.lists(st.tuples(st.integers(1, 3), st.integers(1, 4), st.booleans()), max_size=12)
"""For each block: its lane, how many entries, whether they have digests. Offsets rise over all blocks."""


def blocks_of(pieces: list[tuple[int, int, bool]]) -> list[RoutedRow]:
    made, offset = [], 0
    for lane, count, projected in pieces:
        offsets = np.arange(offset + 1, offset + count + 1)
        digests = b"".join(bytes([n % 255 + 1]) * KEY_BYTES for n in offsets.tolist()) if projected else None
        made.append(entries(lane, offsets, digests))
        offset += count
    return made


def entries_of(row: RoutedRow) -> list[tuple[int, bytes]]:
    digests = WHOLE * row.entries if row.keys is None else row.keys
    offsets = np.frombuffer(row.offsets, "<i8").tolist()
    return [(offset, digests[at * KEY_BYTES : (at + 1) * KEY_BYTES]) for at, offset in enumerate(offsets)]


@given(PIECES, st.randoms())
def test_merged_blocks_hold_the_same_entries_in_order_whatever_the_order_they_came_in(pieces, random) -> None:  # type: ignore[no-untyped-def]
    made = blocks_of(pieces)
    shuffled = list(made)
    random.shuffle(shuffled)

    found = list(merged(shuffled))

    assert [lane for lane, _ in found] == sorted({lane for lane, _, _ in pieces})
    for lane, row in found:
        assert entries_of(row) == [entry for one in made if one.lane == lane for entry in entries_of(one)]
        assert (row.first, row.last) == (entries_of(row)[0][0], entries_of(row)[-1][0])


def test_a_merged_block_does_not_grow_without_end() -> None:
    made = [entries(1, np.arange(start + 1, start + 3001)) for start in range(0, 30_000, 3000)]

    found = [row for _, row in merged(made)]

    assert 3000 < max(row.entries for row in found) <= MERGED
    assert [offset for row in found for offset, _ in entries_of(row)] == list(range(1, 30_001))


def test_rows_come_back_from_a_worker_as_they_were() -> None:
    rows = [
        entries(7, np.array([3, 5])),
        part(3, b"d" * KEY_BYTES, b"{}"),
        aside(None, 4, "why"),
        aside(7, 4, "why"),
        span(2, 9),
    ]

    found = RoutedRange(Partition(3), rows)
    assert decoded(encoded(found)) == found
