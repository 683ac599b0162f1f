"""Blocks: packing and cutting keep every entry with its digest."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidings.lanes.parts import KEY_BYTES, WHOLE, key_of
from tidings.lanes.sqlite.block import count_above, key_in, offsets_of, packed, within
from tidings.log.position import LaneNumber, Offset

LANE = LaneNumber(3)
rising = st.sets(st.integers(1, 1 << 60), min_size=1, max_size=30).map(sorted)
digests = st.just(WHOLE) | st.binary(max_size=5).map(key_of)


def test_offsets_are_little_endian_int64() -> None:
    assert packed(LANE, [1, 258]).offsets == b"\x01\0\0\0\0\0\0\0\x02\x01\0\0\0\0\0\0"


@given(offsets=rising, low=st.integers(0, 1 << 60), high=st.integers(0, 1 << 60), data=st.data())
def test_a_cut_keeps_exactly_the_entries_of_its_range(offsets: list[int], low: int, high: int, data: st.DataObject) -> None:
    chosen = data.draw(st.none() | st.lists(digests, min_size=len(offsets), max_size=len(offsets)))
    block = packed(LANE, offsets, None if chosen is None else b"".join(chosen))
    cut = within(block, Offset(low), Offset(high))
    wanted = [pair for pair in zip(offsets, chosen or [WHOLE] * len(offsets), strict=True) if low < pair[0] <= high]
    found = [] if cut is None else [(offset, key_in(cut, Offset(offset))) for offset in offsets_of(cut)]
    assert found == wanted
    if cut is not None:
        assert (cut.first, cut.last, cut.count, cut.lane) == (wanted[0][0], wanted[-1][0], len(wanted), LANE)


@given(offsets=rising, after=st.integers(0, 1 << 60))
def test_counting_above_a_place_agrees_with_looking(offsets: list[int], after: int) -> None:
    assert count_above(packed(LANE, offsets), Offset(after)) == sum(offset > after for offset in offsets)


def test_an_offset_that_is_not_in_the_block_has_no_digest() -> None:
    block = packed(LANE, [2, 5], key_of(b"x") + WHOLE)
    assert [key_in(block, Offset(offset)) for offset in (1, 2, 3, 5, 6)] == [None, key_of(b"x"), None, WHOLE, None]


def test_no_body_has_the_digest_of_a_reference() -> None:
    assert len(key_of(b"")) == KEY_BYTES
    assert key_of(b"") != WHOLE
