"""The port to what is recorded of single events: the lane's own state, and the facts. `statuses.py` makes statuses of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import msgspec

from tidings.clock import Instant
from tidings.delivery.push.lane.state import LaneState
from tidings.delivery.push.reader import DeadLetter, DeliveryRecord
from tidings.log.position import LaneNumber, Marks, Position

ENDS = ("delivered", "dead", "expired", "skipped", "waiting")
"""Facts after which attempts are counted from one again: it is final, or waits behind the breaker."""


class LaneStanding(msgspec.Struct, frozen=True):
    """A lane's own state as it was saved last, and the word for it (active, suspended, disabled, open, …, deleted)."""

    word: str
    state: LaneState


class Last(msgspec.Struct, frozen=True):
    """The newest fact about an event, when the first one was, and the attempts of all that came to an end.

    Not every attempt is a fact (`tracking`), but the fact that ends a row of attempts says how many there were.
    """

    record: DeliveryRecord
    ended: int
    first_at: Instant

    @property
    def attempts(self) -> int:
        """All attempts, those included that have not come to an end."""
        return self.ended + (0 if self.record.state in ENDS else self.record.tries)


class RecordsKept(msgspec.Struct, frozen=True):
    """What records take, about, and the newest one that had to go because of `push.records_bytes` (0: none)."""

    cut: Instant = Instant(0)
    bytes: int = 0


class RecordsReader(Protocol):
    """Reads single facts about the events of a lane. Every call does a bounded amount of work, however long the lane is.

    Raises LogUnavailable.
    """

    async def standing(self, lane: LaneNumber) -> LaneStanding:
        """The lane's state; that of a fresh lane when delivery has not touched it."""

    async def history(self, lane: LaneNumber, position: Position, limit: int) -> Sequence[DeliveryRecord]:
        """The facts about one event, newest first. Records about a range are not among them."""

    async def last_of(self, lane: LaneNumber, positions: Sequence[Position]) -> Mapping[Position, Last]:
        """The newest fact about each of these events, as far as they are recorded: neighbors in the lane, in either order."""

    async def recorded(self, lane: LaneNumber, upto: Marks, limit: int) -> Sequence[tuple[Position, Last]]:
        """The last recorded events at or below marks with their newest facts, newest event first, at most so many."""

    async def noted(self, lane: LaneNumber, upto: Marks, states: Collection[str], limit: int) -> Sequence[Position]:
        """Events at or below marks of which some fact, not a first-try success, has one of these states; newest first."""

    async def ranges(self, lane: LaneNumber) -> Sequence[DeliveryRecord]:
        """The newest records about ranges: entries that expired unread, or were skipped."""

    async def kept(self) -> RecordsKept:
        """How much is kept of all lanes together."""


class Buried(msgspec.Struct, frozen=True):
    """A dead letter of some lane, without its data. `origin`: its number before it moved to another worker."""

    lane: LaneNumber
    origin: int | None
    letter: DeadLetter


class Burials(msgspec.Struct, frozen=True):
    """Dead letters in the order of their burial, worker by worker, and the highest number seen of each worker."""

    letters: Sequence[Buried]
    seen: Mapping[int, int]


class BurialsReader(Protocol):
    """Follows the dead letters of all workers, whichever lane they are of."""

    def burials(self, seen: Mapping[int, int], limit: int) -> Burials:
        """Those of each worker after the number seen of it, about `limit` in all. Cheap when there are none."""

    def worker_of(self, number: int) -> tuple[int, int]:
        """The worker, and its own number, that the number of a dead letter stands for."""
