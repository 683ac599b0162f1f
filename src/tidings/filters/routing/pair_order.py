"""Pairs of event and lane, put into order. Small numbers are sorted without comparing them, many times as fast as others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

_SMALL = 1 << 16

Small: TypeAlias = NDArray[np.uint16] | NDArray[np.int64]
"""Numbers from 0, in as little memory as pays."""


def small_numbers(numbers: Sequence[int]) -> Small:
    found = np.asarray(numbers, np.int64)
    return found.astype(np.uint16) if found.max(initial=0) < _SMALL else found


def in_order(events: Small, lanes: Small) -> tuple[Small, Small]:
    """The pairs by lane and event, each once."""
    if (events[1:] < events[:-1]).any():
        order = np.argsort(events, kind="stable")
        events, lanes = events[order], lanes[order]
    order = np.argsort(lanes, kind="stable")
    events, lanes = events[order], lanes[order]
    again = (events[1:] == events[:-1]) & (lanes[1:] == lanes[:-1])
    if again.any():
        first = np.concatenate(([True], ~again))
        events, lanes = events[first], lanes[first]
    return events, lanes
