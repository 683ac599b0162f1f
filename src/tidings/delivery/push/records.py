"""The port to what is recorded of single events: the lane's own state, and the facts. `statuses.py` makes statuses of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import msgspec

from tidings.clock import Instant
from tidings.delivery.push.lane import LaneState
from tidings.delivery.push.port import DeliveryRecord
from tidings.log.position import LaneNumber, Offset, Partition, Position


class Standing(msgspec.Struct, frozen=True):
    """A lane's own state as it was saved last, and the word for it (active, suspended, disabled, open, …, deleted)."""

    word: str
    state: LaneState


class Last(msgspec.Struct, frozen=True):
    """The newest fact about an event, how many facts there are, and when the first of them was."""

    record: DeliveryRecord
    count: int
    first_at: Instant


class Kept(msgspec.Struct, frozen=True):
    """Since when records are complete. `cut`: the newest record that had to go because of `push.records_bytes`; 0: none."""

    cut: Instant = Instant(0)


class RecordsReader(Protocol):
    """Reads single facts about the events of a lane. Every call does a bounded amount of work, however long the lane is."""

    def standing(self, lane: LaneNumber) -> Standing:
        """The lane's state; that of a fresh lane when delivery has not touched it."""

    def history(self, lane: LaneNumber, position: Position, limit: int) -> Sequence[DeliveryRecord]:
        """The facts about one event, newest first. Records about a range are not among them."""

    def last_between(self, lane: LaneNumber, partition: Partition, above: Offset, below: Offset) -> Mapping[Offset, Last]:
        """The newest fact about every recorded event between two offsets, both excluded."""

    def noted(
        self, lane: LaneNumber, partition: Partition, below: Offset, states: Collection[str], limit: int
    ) -> Sequence[Offset]:
        """Events below an offset of which some fact, not a first-try success, has one of these states; newest first."""

    def ranges(self, lane: LaneNumber, partition: Partition) -> Sequence[DeliveryRecord]:
        """The newest records about ranges: entries that expired unread, or were skipped."""

    def kept(self, lane: LaneNumber) -> Kept:
        """How far back the records of this lane's worker are complete."""
