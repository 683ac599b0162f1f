"""Finding packed rows by offset: every row is filed under the smallest aligned bin that holds its first and last offset.

Bins have 32**level offsets each. Whatever row holds an offset is filed in one of the bins around it, one for each level, so a
look-up asks thirteen times and never scans. Rows are short ranges, so most are in small bins.
"""

from __future__ import annotations

from collections.abc import Iterator

_STEP = 5
_LEVELS = 13
_LEVEL_SHIFT = 58
"""A bin's number is its level above these bits, and which one of the level below."""


def bin_of(low: int, high: int) -> int:
    """The bin to file a row under whose offsets are all in low … high."""
    level = -(-(low ^ high).bit_length() // _STEP)
    return (level << _LEVEL_SHIFT) | (low >> (level * _STEP))


def bins_between(low: int, high: int) -> Iterator[tuple[int, int]]:
    """First and last number of the bins, level by level, that may hold a row with an offset in low … high."""
    for level in range(_LEVELS):
        mark = level << _LEVEL_SHIFT
        yield mark | (low >> (level * _STEP)), mark | (high >> (level * _STEP))
