"""What became of a lane's events, newest first: the lane's own entries and what is recorded, put together page by page.

A page looks at a bounded number of events, however long the lane is; it may therefore be short, and says where to go on.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from tidings.delivery.push.reader import DeliveryRecord
from tidings.delivery.push.records.port import ENDS, LaneStanding, Last, RecordsReader
from tidings.delivery.push.records.status import OPEN, DeliveryStatus, covers, status_of
from tidings.lanes.port import LaneIndex, Lanes, Mark
from tidings.log.position import LaneNumber, Marks, Position, marks_below, place_before, reached

LOOKS = 20_000
"""Events that are looked at for one page at the most."""

HISTORY = 1000
CHUNK = 512
"""Events that are looked at in one go."""

LEFT = 0
"""Stands for the number of what has left the lane."""

NOTED = frozenset(("dead", "expired"))
FEW = NOTED | {"retrying"}
"""States of events that have a fact of their own, or are among the open items: found without walking through all the others."""


class StatusQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """Which statuses: of events above and up to marks, in one of these states (empty: any)."""

    states: frozenset[str] = frozenset()
    above: Marks = {}
    upto: Marks | None = None
    limit: int = 100


class StatusPage(msgspec.Struct, frozen=True):
    """Statuses, newest event first. `before`: ask again for what is before this event to go on; None at the end."""

    found: Sequence[DeliveryStatus]
    before: Position | None


class LaneSources(NamedTuple):
    """Where statuses are read: lanes with their index, and the records."""

    lanes: Lanes
    lane_index: LaneIndex
    records: RecordsReader


class Statuses:
    """Reads statuses."""

    def __init__(self, sources: LaneSources) -> None:
        self._sources = sources

    async def of(self, lane: LaneNumber, position: Position) -> DeliveryStatus | None:
        """The status of one event with its history; None when the lane never had it, as far as is known."""
        lanes, _, records = self._sources
        found = await lanes.find(lane, position)
        if not found.exact and not await records.history(lane, position, 1):
            if not reached(await lanes.routed(), position):
                return None
            return next((_gone(lane, position, one) for one in await records.ranges(lane) if covers(one, position)), None)
        mark = Mark(found.mark.number if found.exact else LEFT, position)
        # The state first: what is recorded meanwhile is then known as open, never as final without a record.
        standing = await records.standing(lane)
        history = tuple(await records.history(lane, position, HISTORY))
        status = status_of(lane, mark, standing, _newest(history), await records.ranges(lane))
        return msgspec.structs.replace(status, history=history)

    async def holds(self, lane: LaneNumber, position: Position) -> bool:
        """Whether the lane has this entry now."""
        return (await self._sources.lanes.find(lane, position)).exact

    async def page(self, lane: LaneNumber, question: StatusQuestion) -> StatusPage:
        """The next statuses that were asked for."""
        look = await _look(self._sources, lane, question)
        return await (look.at_few() if look.wants_few() else look.at_all())


async def _look(sources: LaneSources, lane: LaneNumber, question: StatusQuestion) -> _Look:
    # First what is routed: an entry that is routed later is above, one that is final meanwhile is recorded.
    upto = await sources.lanes.routed() if question.upto is None else question.upto
    last = (await sources.lanes.find(lane, upto)).mark
    standing = await sources.records.standing(lane)
    return _Look(sources, lane, question, _Bounds(upto, last), standing, await sources.records.ranges(lane))


class _Bounds(NamedTuple):
    """Up to which event to look: marks, and the lane's last entry there."""

    upto: Marks
    last: Mark


class _Look:
    """One page in the making."""

    def __init__(
        self,
        sources: LaneSources,
        lane: LaneNumber,
        question: StatusQuestion,
        bounds: _Bounds,
        standing: LaneStanding,
        ranges: Sequence[DeliveryRecord],
    ) -> None:
        self._sources = sources
        self._lane = lane
        self._question = question
        self._bounds = bounds
        self._standing = standing
        self._ranges = ranges

    def wants_few(self) -> bool:
        """Whether only states were asked for whose events are found without walking through all the others."""
        absent = set()
        if self._standing.word != "deleted":
            absent.add("deleted")
        if not any(one.state == "skipped" for one in self._ranges):
            absent.add("skipped")
        return bool(self._question.states) and self._question.states - absent <= FEW

    async def at_all(self) -> StatusPage:
        """Go through everything that the lane holds or that is recorded of it."""
        found: list[DeliveryStatus] = []
        looked = 0
        async for marks, lasts in self._chunks(self._floor()):
            for mark in marks:
                if reached(self._question.above, mark.position):
                    return StatusPage(found, None)
                status = self._status(mark, lasts.get(mark.position))
                if self._is_wanted(status):
                    found.append(status)
                    if len(found) == self._question.limit:
                        return StatusPage(found, mark.position)
            looked += len(marks)
            if looked >= LOOKS:
                return StatusPage(found, marks[-1].position)
        return StatusPage(found, None)

    async def at_few(self) -> StatusPage:
        """Go through the open items and the events with facts of the states asked for."""
        found: list[DeliveryStatus] = []
        records, limit = self._sources.records, min(LOOKS // 10, 4 * self._question.limit)
        items = {mark async for mark in self._open_items()}
        states = sorted(self._question.states & NOTED)
        positions = await records.noted(self._lane, self._bounds.upto, states, limit) if states else []
        noted = [await self._mark(position) for position in positions]
        lowest = noted[-1] if len(noted) == limit else None
        for mark in sorted({*noted, *(item for item in items if lowest is None or item >= lowest)}, reverse=True):
            if reached(self._question.above, mark.position):
                lowest = None
                break
            history = await records.history(self._lane, mark.position, HISTORY)
            status = self._status(mark, _newest(history))
            if self._is_wanted(status):
                found.append(status)
                if len(found) == self._question.limit:
                    return StatusPage(found, mark.position)
        if lowest is not None:
            return StatusPage(found, lowest.position)
        return StatusPage([*found, *self._unread()], None)

    async def _open_items(self) -> AsyncIterator[Mark]:
        for item in self._standing.state.items():
            if reached(self._bounds.upto, item.position):
                yield Mark(item.number, item.position) if item.number > 0 else await self._mark(item.position)

    async def _mark(self, position: Position) -> Mark:
        """The place of an event in the lane, the one that it had if it left it."""
        return (await self._sources.lanes.find(self._lane, position)).mark

    def _unread(self) -> list[DeliveryStatus]:
        """Ranges that expired before anybody read them: nothing is known of their single events. Told at the end."""
        if "expired" not in self._question.states:
            return []
        above, upto = self._question.above, self._bounds.upto
        told = [_gone(self._lane, one.position, one) for one in self._ranges if one.state == "expired"]
        return [one for one in told if not reached(above, one.position) and reached(upto, one.position)]

    def _status(self, mark: Mark, last: Last | None) -> DeliveryStatus:
        return status_of(self._lane, mark, self._standing, last, self._ranges)

    def _is_wanted(self, status: DeliveryStatus) -> bool:
        return not self._question.states or status.state in self._question.states

    def _floor(self) -> int:
        """No entry with this number or a smaller one is wanted."""
        if not self._question.states or not self._question.states <= OPEN:
            return 0
        state = self._standing.state
        return max(0, min([state.low_water.number, *(number - 1 for number in state.again.open)]))

    async def _chunks(self, floor: int) -> AsyncIterator[tuple[Sequence[Mark], Mapping[Position, Last]]]:
        """The lane's entries from the newest down to `floor`, then what is recorded of those that left the lane."""
        _, index, records = self._sources
        upto, rest = self._bounds.last, self._bounds.upto
        while held := await index.newest(self._lane, upto, CHUNK):
            yield [mark for mark in held if mark.number > floor], await records.last_of(self._lane, [at for _, at in held])
            if held[-1].number <= floor + 1:
                return
            upto, rest = Mark(held[-1].number - 1, place_before(held[-1].position)), marks_below(held[-1].position)
        while recorded := await records.recorded(self._lane, rest, CHUNK):
            yield [Mark(LEFT, position) for position, _ in recorded], dict(recorded)
            rest = marks_below(recorded[-1][0])


def _newest(history: Sequence[DeliveryRecord]) -> Last | None:
    ended = sum(one.tries for one in history if one.state in ENDS)
    return Last(history[0], ended, history[-1].at) if history else None


def _gone(lane: LaneNumber, position: Position, record: DeliveryRecord) -> DeliveryStatus:
    upto = record.upto if record.position == position else None
    return DeliveryStatus(lane=lane, position=position, state=record.state, at=record.at, cause=record.cause, upto=upto)
