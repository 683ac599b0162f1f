"""All dead letters of a lane once more: as many at once as there is room for, the others in the background, restarts included."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from tidings.clock import Clock
from tidings.delivery.push.engine import Engine
from tidings.delivery.push.lane.push_lane import PushLane
from tidings.delivery.push.store import DeliveryStore, Stage
from tidings.lanes.port import Lanes, Mark
from tidings.log.position import LaneNumber, Position

SHARE = 4
"""Dead letters take at most one in so many of a lane's open items, so that new events are not held up by them."""

FINDS = 50
"""Entries that are looked up in one go; then the event loop gets to see what else there is."""


class Letters(NamedTuple):
    """Dead letters that are sent again now, and how many others wait for their turn."""

    marks: Mapping[Position, Mark]
    others: int


class Recall:
    """Takes dead letters back onto the redelivery list. One event loop."""

    def __init__(self, engine: Engine, store: DeliveryStore, lanes: Lanes, clock: Clock) -> None:
        self._engine = engine
        self._store = store
        self._source = lanes
        self._clock = clock
        self._going: set[LaneNumber] | None = None

    async def first_of(self, lane: PushLane, besides: Collection[Position]) -> Letters:
        """The first dead letters of a lane. `besides`: those that are raised already, though that is not saved yet."""
        letters = [one for one in self._store.letters(lane.number, (Stage.LYING,)) if one not in besides]
        now = letters[: self._room(lane)]
        return Letters(await marks_at(self._source, lane, now), len(letters) - len(now))

    def begin(self, lane: PushLane, first: Letters) -> None:
        """Begin with all dead letters of a lane."""
        lane.state.letters += first.others
        self._engine.ledger.recalled(lane)
        self._send(lane, first.marks)
        self._lanes().add(lane.number)

    async def go_on(self) -> None:
        """Send more wherever half of the room is free again."""
        due = [lane for lane in map(self._engine.lane, self._lanes()) if lane is not None and self._may_go_on(lane)]
        if not due:
            return
        # Letters are read as of the last save: none must be taken twice.
        await self._engine.saver.save()
        for lane in due:
            marks = await marks_at(self._source, lane, self._store.letters(lane.number, (Stage.WAITING,), self._room(lane)))
            if not lane.state.letters:
                # Dropped meanwhile.
                continue
            lane.state.letters = max(0, lane.state.letters - len(marks)) if marks else 0
            if not lane.state.letters:
                self._lanes().discard(lane.number)
            self._send(lane, marks)
            self._engine.wake(lane)

    def _lanes(self) -> set[LaneNumber]:
        """The lanes that have letters waiting; after a restart, those that had."""
        if self._going is None:
            lanes = map(self._engine.lane, self._engine.all_lanes())
            self._going = {lane.number for lane in lanes if lane is not None and lane.state.letters}
        return self._going

    def _may_go_on(self, lane: PushLane) -> bool:
        return lane.state.letters > 0 and 2 * self._room(lane) >= lane.state.limit // SHARE

    def _send(self, lane: PushLane, letters: Mapping[Position, Mark]) -> None:
        for position in letters:
            self._engine.ledger.raised(lane, position)
        lane.state.redeliver(letters.values(), self._clock.now())

    def _room(self, lane: PushLane) -> int:
        return max(0, min(max(1, lane.state.limit // SHARE) - len(lane.state.again.open), lane.state.room))


async def marks_at(lanes: Lanes, lane: PushLane, positions: Iterable[Position]) -> dict[Position, Mark]:
    """The entries of a lane at these positions. What left it has no number any more; the negative one stands for no other entry."""
    marks = {}
    for count, position in enumerate(sorted(positions), start=1):
        found = await lanes.find(lane.number, position)
        marks[position] = found.mark if found.exact else found.mark._replace(number=-position.offset)
        if count % FINDS == 0:
            await asyncio.sleep(0)
    return marks
