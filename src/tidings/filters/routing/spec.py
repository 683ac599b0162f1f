"""What goes into the router and what comes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from tidings.filters.algebra import Filter

Numbers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RouteSpec:
    """One version of one lane's filter, in force for positions p with since < p ≤ until (None: still in force)."""

    lane: int
    topics: frozenset[int]
    filter: Filter | None
    since: int
    until: int | None = None


@dataclass(frozen=True, slots=True)
class RoutingBatch:
    """Some events, as columns of equal length. Heads are stored heads: flat JSON objects of the attributes."""

    positions: Sequence[int]
    topics: Sequence[int]
    heads: Sequence[bytes]
    datas: Sequence[bytes | None]


class SetAside(NamedTuple):
    """An event that could not be decided: for one lane, or (lane None) for every lane that has a filter."""

    event: int
    lane: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class Matches:
    """Which events of the batch go to which lanes, ordered by lane and position, each pair once.

    `blocked`: lanes whose regular expressions have used up their time, with the reason; their events are set aside from then on.
    `fell_back`: how many events the plain reading had to decide because the index failed; it should be 0.
    """

    events: Numbers
    lanes: Numbers
    aside: list[SetAside] = field(default_factory=list)
    blocked: dict[int, str] = field(default_factory=dict)
    fell_back: int = 0


class OneMatch(msgspec.Struct, frozen=True, gc=False):
    """The lanes of one event, each once and in no order, and what was set aside (as event 0)."""

    lanes: list[int]
    aside: Sequence[SetAside] = ()
    fell_back: bool = False
