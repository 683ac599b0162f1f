"""Blocks: packing and cutting keep every entry with its payload."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidings.log.block import count_above, offsets_of, packed, payloads_of, within
from tidings.log.position import LaneNumber, Offset

LANE = LaneNumber(3)
rising = st.sets(st.integers(1, 1 << 60), min_size=1, max_size=30).map(sorted)
bodies = st.none() | st.binary(max_size=5)


def test_offsets_are_little_endian_int64() -> None:
    assert packed(LANE, [1, 258]).offsets == b"\x01\0\0\0\0\0\0\0\x02\x01\0\0\0\0\0\0"


@given(offsets=rising, low=st.integers(0, 1 << 60), high=st.integers(0, 1 << 60), data=st.data())
def test_a_cut_keeps_exactly_the_entries_of_its_range(offsets: list[int], low: int, high: int, data: st.DataObject) -> None:
    payloads = data.draw(st.none() | st.lists(bodies, min_size=len(offsets), max_size=len(offsets)))
    block = packed(LANE, offsets, payloads)
    cut = within(block, Offset(low), Offset(high))
    wanted = [pair for pair in zip(offsets, payloads or [None] * len(offsets), strict=True) if low < pair[0] <= high]
    found = [] if cut is None else list(zip(offsets_of(cut), payloads_of(cut), strict=True))
    assert found == wanted
    if cut is not None:
        assert (cut.first, cut.last, cut.count, cut.lane) == (wanted[0][0], wanted[-1][0], len(wanted), LANE)


@given(offsets=rising, after=st.integers(0, 1 << 60))
def test_counting_above_a_place_agrees_with_looking(offsets: list[int], after: int) -> None:
    assert count_above(packed(LANE, offsets), Offset(after)) == sum(offset > after for offset in offsets)
