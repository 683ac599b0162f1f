"""What became of a lane's events, newest first: the lane's own entries and what is recorded, put together page by page.

A page looks at a bounded number of offsets, however long the lane is; it may therefore be short, and says where to go on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from tidings.clock import Instant
from tidings.delivery.push.reader import DeliveryRecord
from tidings.delivery.push.records.port import ENDS, LaneStanding, Last, RecordsReader
from tidings.delivery.push.records.status import OPEN, DeliveryStatus, status_of
from tidings.lanes.sqlite.block import offsets_of
from tidings.log.port import LanesReader
from tidings.log.position import EMBEDDED, START, LaneNumber, Offset, Position

LOOKS = 20_000
"""Events that are looked at for one page at the most."""

HISTORY = 1000
BLOCKS = 32
NARROW, WIDE = 1024, 1 << 40
NOTED = frozenset(("dead", "expired"))
FEW = NOTED | {"retrying"}
"""States of events that have a fact of their own, or are among the open items: found without walking through all the others."""


class StatusQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """Which statuses: of events above and below an offset, in one of these states (empty: any)."""

    states: frozenset[str] = frozenset()
    above: Offset = START
    below: Offset | None = None
    limit: int = 100


class StatusPage(msgspec.Struct, frozen=True):
    """Statuses, newest event first. `before`: ask again below this offset to go on; None at the end."""

    found: Sequence[DeliveryStatus]
    before: Offset | None


class Statuses:
    """Reads statuses. Safe to share between threads as far as its readers are."""

    def __init__(self, records: RecordsReader, lanes: LanesReader) -> None:
        self._records = records
        self._lanes = lanes

    def of(self, lane: LaneNumber, position: Position) -> DeliveryStatus | None:
        """The status of one event with its history; None when the lane never had it, as far as is known."""
        if not self.holds(lane, position) and not self._records.history(lane, position, 1):
            if position.offset > self._lanes.routed().get(position.partition, START):
                return None
            ranges = self._records.ranges(lane, position.partition)
            return next((_gone(lane, position, one) for one in ranges if _covers(one, position.offset)), None)
        # The state first: what is recorded meanwhile is then known as open, never as final without a record.
        standing = self._records.standing(lane)
        history = tuple(self._records.history(lane, position, HISTORY))
        found = status_of(lane, position, standing, _newest(history), self._records.ranges(lane, position.partition))
        return msgspec.structs.replace(found, history=history)

    def holds(self, lane: LaneNumber, position: Position) -> bool:
        """Whether the lane has this entry now."""
        blocks = self._lanes.blocks(lane, Offset(position.offset - 1), position.partition, 1)
        return any(position.offset in offsets_of(block) for block in blocks)

    def page(self, lane: LaneNumber, question: StatusQuestion) -> StatusPage:
        """The next statuses that were asked for."""
        look = _Look(self._records, self._lanes, lane, question)
        return look.at_few() if look.wants_few() else look.at_all()


class _Look:
    """One page in the making."""

    def __init__(self, records: RecordsReader, lanes: LanesReader, lane: LaneNumber, question: StatusQuestion) -> None:
        self._records = records
        self._lanes = lanes
        self._lane = lane
        self._question = question
        # First what is routed: an entry that is routed later is above, one that is final meanwhile is recorded.
        end = Offset(lanes.routed().get(EMBEDDED, START) + 1)
        self._standing: LaneStanding = records.standing(lane)
        self._ranges = records.ranges(lane, EMBEDDED)
        self._below = Offset(min(question.below, end)) if question.below is not None else end

    def wants_few(self) -> bool:
        """Whether only states were asked for whose events are found without walking through all the others."""
        absent = set()
        if self._standing.word != "deleted":
            absent.add("deleted")
        if not any(one.state == "skipped" for one in self._ranges):
            absent.add("skipped")
        return bool(self._question.states) and self._question.states - absent <= FEW

    def at_all(self) -> StatusPage:
        """Go through everything that the lane holds or that is recorded of it."""
        found: list[DeliveryStatus] = []
        looked = 0
        for offsets, lasts, low in self._windows(self._floor()):
            for offset in offsets:
                looked += 1
                status = self._status(offset, lasts.get(offset))
                if self._is_wanted(status):
                    found.append(status)
                    if len(found) == self._question.limit:
                        return StatusPage(found, offset)
            if looked >= LOOKS:
                return StatusPage(found, Offset(low + 1))
        return StatusPage(found, None)

    def at_few(self) -> StatusPage:
        """Go through the open items and the events with facts of the states asked for."""
        found: list[DeliveryStatus] = []
        limit = min(LOOKS // 10, 4 * self._question.limit)
        items = sorted({item.offset for item in self._standing.state.items() if item.offset < self._below}, reverse=True)
        states = sorted(self._question.states & NOTED)
        noted = self._records.noted(self._lane, EMBEDDED, self._below, states, limit) if states else []
        lowest = noted[-1] if len(noted) == limit else START
        for offset in sorted({*noted, *(offset for offset in items if offset >= lowest)}, reverse=True):
            if offset <= self._question.above:
                lowest = START
                break
            status = self._status(offset, _newest(self._records.history(self._lane, Position(EMBEDDED, offset), HISTORY)))
            if self._is_wanted(status):
                found.append(status)
                if len(found) == self._question.limit:
                    return StatusPage(found, offset)
        more = self._unread(lowest)
        return StatusPage([*found, *more], Offset(lowest) if lowest else None)

    def _unread(self, lowest: Offset) -> list[DeliveryStatus]:
        """Ranges that expired before anybody read them: nothing is known of their single events. Told at the end."""
        if lowest or "expired" not in self._question.states:
            return []
        told = [_gone(self._lane, one.position, one) for one in self._ranges if one.state == "expired"]
        return [one for one in told if self._question.above < one.position.offset < self._below]

    def _status(self, offset: Offset, last: Last | None) -> DeliveryStatus:
        return status_of(self._lane, Position(EMBEDDED, offset), self._standing, last, self._ranges)

    def _is_wanted(self, status: DeliveryStatus) -> bool:
        return not self._question.states or status.state in self._question.states

    def _floor(self) -> Offset:
        """Nothing at or below is wanted."""
        if not self._question.states or not self._question.states <= OPEN:
            return self._question.above
        state = self._standing.state
        again = (Offset(item.offset - 1) for item in state.again.open.values())
        return max(self._question.above, min([state.low_water.position.offset, *again]))

    def _windows(self, floor: Offset) -> Iterator[tuple[Sequence[Offset], Mapping[Offset, Last], Offset]]:
        """The events between floor and below, in windows from the newest down: wider where there are few, narrow where many."""
        high, width = self._below, NARROW
        while high > floor + 1:
            low = Offset(max(floor, high - width))
            held = self._held(low, high, width)
            if held is None:
                width = NARROW
                continue
            lasts = self._records.last_between(self._lane, EMBEDDED, low, high)
            offsets = sorted({*held, *lasts}, reverse=True)
            yield offsets, lasts, low
            width = min(WIDE, width * 4) if len(offsets) < NARROW // 4 else NARROW
            high = Offset(low + 1)

    def _held(self, low: Offset, high: Offset, width: int) -> list[Offset] | None:
        """The lane's entries between two offsets; None when they are too many for one window."""
        found: list[Offset] = []
        after = low
        while blocks := self._lanes.blocks(self._lane, after, EMBEDDED, BLOCKS):
            for block in blocks:
                found += [Offset(offset) for offset in offsets_of(block) if low < offset < high]
            after = blocks[-1].last
            if after >= high - 1:
                break
            if width > NARROW and len(found) > NARROW:
                return None
        return found


def _newest(history: Sequence[DeliveryRecord]) -> Last | None:
    ended = sum(one.tries for one in history if one.state in ENDS)
    return Last(history[0], ended, history[-1].at) if history else None


def _covers(record: DeliveryRecord, offset: Offset) -> bool:
    return record.upto is not None and record.position.offset <= offset <= record.upto


def _gone(lane: LaneNumber, position: Position, record: DeliveryRecord) -> DeliveryStatus:
    upto = record.upto if record.position == position else None
    at: Instant = record.at
    return DeliveryStatus(lane=lane, position=position, state=record.state, at=at, cause=record.cause, upto=upto)
