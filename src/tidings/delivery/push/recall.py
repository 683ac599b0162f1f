"""All dead letters of a lane once more: as many at once as there is room for, the others in the background, restarts included."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tidings.clock import Clock
from tidings.delivery.push.engine import Engine
from tidings.delivery.push.pushing import PushLane
from tidings.delivery.push.store import DeliveryStore, Stage
from tidings.log.position import LaneNumber, Offset

SHARE = 4
"""Dead letters take at most one in so many of a lane's open items, so that new events are not held up by them."""


class Recall:
    """Takes dead letters back onto the redelivery list. One event loop."""

    def __init__(self, engine: Engine, store: DeliveryStore, clock: Clock) -> None:
        self._engine = engine
        self._store = store
        self._clock = clock
        self._going: set[LaneNumber] | None = None

    def all_of(self, lane: PushLane, besides: Collection[Offset]) -> None:
        """Begin with all dead letters of a lane. `besides`: those that are raised already, though that is not saved yet."""
        letters = [offset for offset in self._store.letters(lane.key, (Stage.LYING,)) if offset not in besides]
        now = letters[: self._room(lane)]
        lane.state.letters += len(letters) - len(now)
        self._engine.ledger.recalled(lane)
        self._send(lane, now)
        self._lanes().add(lane.key.lane)

    async def go_on(self) -> None:
        """Send more wherever half of the room is free again."""
        due = [lane for lane in map(self._engine.lane, self._lanes()) if lane is not None and self._may_go_on(lane)]
        if not due:
            return
        # Letters are read as of the last save: none must be taken twice.
        await self._engine.saver.save()
        for lane in due:
            letters = self._store.letters(lane.key, (Stage.WAITING,), self._room(lane))
            lane.state.letters = max(0, lane.state.letters - len(letters)) if letters else 0
            if not lane.state.letters:
                self._lanes().discard(lane.key.lane)
            self._send(lane, letters)

    def _lanes(self) -> set[LaneNumber]:
        """The lanes that have letters waiting; after a restart, those that had."""
        if self._going is None:
            lanes = map(self._engine.lane, self._engine.all_lanes())
            self._going = {lane.key.lane for lane in lanes if lane is not None and lane.state.letters}
        return self._going

    def _may_go_on(self, lane: PushLane) -> bool:
        return lane.state.letters > 0 and 2 * self._room(lane) >= lane.state.limit // SHARE

    def _send(self, lane: PushLane, letters: Sequence[Offset]) -> None:
        for offset in letters:
            self._engine.ledger.raised(lane, offset)
        self._engine.wake(lane, lane.state.redeliver(letters, self._clock.now()))

    def _room(self, lane: PushLane) -> int:
        return max(0, min(max(1, lane.state.limit // SHARE) - len(lane.state.again), lane.state.room))
