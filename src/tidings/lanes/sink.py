"""The writing side of lanes: what routing found, written exactly once. Only the pipeline has one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from tidings.log.port import Remains
from tidings.log.position import LaneNumber, Marks, Offset, Partition, Position


class LaneRun(msgspec.Struct, frozen=True, gc=False):
    """Consecutive entries of one lane, from one partition: offsets as little-endian int64, rising.

    `keys` is None when every entry is the event as the log has it. Else it has 16 bytes for each: the key of the part that the
    lane gets, or zeros (parts.py).
    """

    lane: LaneNumber
    partition: Partition
    first: Offset
    last: Offset
    count: int
    offsets: bytes
    keys: bytes | None = None


class Filling(msgspec.Struct, frozen=True, kw_only=True):
    """A lane that is filled from the log with everything after `after`, the `number`-th time, and has come as far as `reached`.

    `since`: where the subscription's own routes begin; it is not done before routing has come there. `upto`: how far it may go
    now. `done`: routing writes the lane itself again.
    """

    lane: LaneNumber
    number: int
    after: Marks
    since: Marks
    reached: Marks
    upto: Marks = {}
    done: bool = False


class PartKey(NamedTuple):
    """Which part of which event."""

    position: Position
    key: bytes


class Part(msgspec.Struct, frozen=True, gc=False):
    """What projections left of an event's payload."""

    key: PartKey
    data: bytes


class Aside(msgspec.Struct, frozen=True, gc=False):
    """An event that could not be routed, for one lane or (lane None) for all, with the reason."""

    position: Position
    lane: LaneNumber | None
    reason: str


class Routed(msgspec.Struct, frozen=True, gc=False):
    """What one routing step found: runs ordered by (lane, first), how far it scanned, what was set aside.

    `parts` holds every part that a run names. The lanes of `begun` lose all their entries and are filled anew. With
    `filled`, it is a step of filling these lanes and of nothing else, and `scanned` is how far they are filled.
    """

    runs: Sequence[LaneRun]
    scanned: Marks
    aside: Sequence[Aside] = ()
    parts: Sequence[Part] = ()
    begun: Sequence[Filling] = ()
    filled: frozenset[LaneNumber] = frozenset()


class LaneSink(Protocol):
    """Where routing writes."""

    def routed(self) -> Marks:
        """How far routing is durable. The truth after any crash: whatever is at or below was routed exactly once."""

    def write(self, routed: Routed) -> None:
        """Store runs, parts, asides and `scanned` in one transaction; durable when it returns.

        Entries at or below `routed()` are dropped first, so calling twice with the same or an overlapping range changes nothing.
        What is routed for a lane that is being filled is kept out of it until the filling has come there: no gap, no repeat.
        """

    def fillings(self) -> Mapping[LaneNumber, Filling]:
        """The newest filling of every lane that was ever filled."""

    def trim(self, below: Marks) -> int:
        """Remove what ends at or below these marks: these events are gone from the log. How many runs went."""

    def rest(self) -> None:
        """Nothing is being routed now: give back what only writing needs."""

    def sweep(self, log: Remains) -> Iterator[int]:
        """Remove parts whose events are gone from the log, though older ones of other topics are still there.

        Does a small slice for each step that is taken, and says how many parts went; writes pass in between. What was swept
        before is not looked at again. Left at any step, it may be begun anew at any time.
        """

    def close(self) -> None:
        """Release the files. Safe to call twice."""
