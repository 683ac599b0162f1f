"""The port of lanes: a lane is a log of its own whose entries are numbered 1, 2, 3 …

Reading is asynchronous, so that a network behind it delays nobody but the lanes that are read. Numbers may be compared and
subtracted; positions are names. A mark has both, and an adapter looks by the one that it can find.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from tidings.clock import Instant
from tidings.lanes.sink import Aside, Filling
from tidings.log.position import START, LaneNumber, Marks, Partition, Position


class StoredEntry(msgspec.Struct, gc=False):
    """What is to be sent of an entry, projections applied. Lanes that hold the same share one.

    `forms` is where readers may leave what they made of it, for the other lanes.
    """

    at: Instant
    key_hash: int
    head: bytes
    data: bytes | None
    forms: dict[Any, Any] = {}


class Mark(NamedTuple):
    """A place in a lane: the number of its last entry at or before `position`."""

    number: int
    position: Position


BEGIN = Mark(0, Position(Partition(0), START))
"""Before the first entry of any lane."""


class LaneEntry(NamedTuple):
    """One entry. `stored` None: it expired, retention removed it."""

    number: int
    position: Position
    stored: StoredEntry | None


class LanePage(NamedTuple):
    """Some entries in order. `before`: how many entries the lane has had before the first of them, removed ones included;
    without entries, how many it has had at all.

    More than the number that was read after: the difference is gone. Fewer: the lane's numbers were given anew.
    `filling`: so often the lane was filled anew, and the newest time it began at `begin`: whoever knows an older one
    reads on from there.
    """

    before: int
    entries: Sequence[LaneEntry]
    filling: int = 0
    begin: Mark | None = None


class Touched(msgspec.Struct, frozen=True, gc=False):
    """Which lanes got entries since `after`; the next call goes on after `upto`. `lost`: the record was cut, look at all lanes."""

    lanes: frozenset[LaneNumber]
    upto: int
    lost: bool = False


class PageLimit(NamedTuple):
    """How much one read may return; one entry always may."""

    entries: int
    bytes: int


class FoundEntry(NamedTuple):
    """A place that was looked for, and whether the lane has an entry exactly there."""

    mark: Mark
    exact: bool


class Lanes(Protocol):
    """The reading side of lanes. Every call may be repeated. Raises LogUnavailable: nothing can be read now."""

    async def read(self, lane: LaneNumber, after: Mark, limit: PageLimit) -> LanePage:
        """The next entries after a mark."""

    async def fetch(self, lane: LaneNumber, marks: Sequence[Mark]) -> Sequence[LaneEntry]:
        """The entries at these marks, in the order given; those that are gone as expired."""

    async def find(self, lane: LaneNumber, place: Position | Marks) -> FoundEntry:
        """The last entry at or before a position, or at or below marks."""

    async def end(self, lane: LaneNumber) -> Mark:
        """How far the lane reaches: everything that was routed before this call is at or below, or yet to be filled in."""

    async def work(self, since: int) -> Touched:
        """Which lanes got entries since the last call. Cheap when nothing happened."""

    async def routed(self) -> Marks:
        """How far routing is durable."""


class Backlog(NamedTuple):
    """How many entries a lane has after a mark, removed ones aside, and where the first of them is."""

    entries: int
    first: Position | None


class LaneIndex(Protocol):
    """What is in lanes, without what is to be sent: for statuses and figures. Every call may be repeated and does bounded work.

    Raises LogUnavailable.
    """

    async def newest(self, lane: LaneNumber, upto: Mark, limit: int) -> Sequence[Mark]:
        """The last entries at or before a mark, newest first, at most so many. None: there are no more."""

    async def backlogs(self, after: Mapping[LaneNumber, Mark]) -> Mapping[LaneNumber, Backlog]:
        """What lanes have after marks."""

    async def fillings(self) -> Mapping[LaneNumber, Filling]:
        """The newest filling of every lane that was ever filled from the log."""

    async def asides(self, after: Position | None, limit: int) -> Sequence[Aside]:
        """What routing set aside, oldest first: about `limit`, and all of one event together."""
