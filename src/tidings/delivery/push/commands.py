"""Commands from the log, each applied exactly once by its id, with a result that the api can read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from tidings.clock import Clock, Instant
from tidings.delivery.push.engine import Engine
from tidings.delivery.push.lane.push_lane import PushLane
from tidings.delivery.push.records.dead_letter_recall import Recall, marks_at
from tidings.delivery.push.store import AppliedCommand, Attempted, DeliveryStore, Stage
from tidings.lanes.port import Lanes, Mark
from tidings.log.commands import (
    Activate,
    CloseBreaker,
    Command,
    CommandStream,
    Disable,
    DropDeadLetters,
    Enable,
    Redeliver,
    Rewind,
    Suspend,
)
from tidings.log.position import Marks, Position, before, place_after
from tidings.registry.current import CurrentRegistry

AT_ONCE = 100
"""Commands that are read in one go."""


class Commands:
    """Follows the commands stream. The result, the effect and how far was read are saved together."""

    def __init__(self, engine: Engine, store: DeliveryStore, stream: CommandStream, lanes: Lanes, clock: Clock) -> None:
        self._engine = engine
        self._store = store
        self._stream = stream
        self._lanes = lanes
        self._clock = clock
        self._recall = Recall(engine, store, lanes, clock)
        self._read: Marks = {}

    def start(self, after: Marks) -> None:
        """Go on after what was applied before."""
        self._read = after

    async def follow(self, registry: CurrentRegistry) -> None:
        """Apply what has come since the last call; applied and saved when it returns."""
        while (page := await self._stream.follow(self._read, AT_ONCE)).reached != self._read:
            # A subscription may be younger than what we know; its command is not.
            if registry.refresh():
                self._engine.adopt(registry.snapshot)
            # Dead letters are read as of the last save.
            await self._engine.saver.save()
            for command in page.commands:
                await self._take(command)
            self._read = page.reached
            self._engine.ledger.commands_read(self._read)
            await self._engine.saver.save()

    async def send_letters(self) -> None:
        """Send more of the dead letters that wait for room."""
        await self._recall.go_on()

    async def _take(self, command: Command) -> None:
        if not self._engine.mine(command.lane):
            return
        if self._store.result(command.id) is None and not self._engine.ledger.is_applied(command.id):
            result = await self._apply(command)
            self._engine.ledger.applied(AppliedCommand(command.id, self._clock.now(), result))

    async def _apply(self, command: Command) -> str:
        """Do it; "" or why it could not be done.

        Whatever has to be read is read first: from the first change of the lane on nothing waits, so that the change and the result
        are saved together.
        """
        lane = self._engine.lane(command.lane)
        if lane is None:
            return "there is no such subscription"
        result = ""
        match command.act:
            case Suspend():
                lane.suspend(True, self._clock.now())
                self._engine.wake(lane)
            case Activate():
                lane.suspend(False, self._clock.now())
                self._engine.wake(lane)
            case CloseBreaker():
                self._engine.close_breaker(lane)
            case Disable(reason):
                self._engine.disable(lane, reason)
            case Enable(skip):
                await self._enable(lane, skip)
            case Rewind(to):
                mark = await self._mark(lane, to)
                lane.tally.replays += 1
                self._rewind(lane, mark)
            case Redeliver(positions, dead_letters):
                result = await self._redeliver(lane, positions, dead_letters)
            case DropDeadLetters(positions):
                for position in self._letters(lane, positions):
                    self._engine.ledger.released(lane, position)
                if not positions:
                    lane.state.letters = 0
            case _:
                assert_never(command.act)
        self._engine.ledger.commanded(lane)
        return result

    async def _enable(self, lane: PushLane, skip: bool) -> None:
        end = await self._lanes.end(lane.number)
        if not lane.state.disabled:
            return
        lane.state.disabled = ""
        lane.state.failing_since = Instant(0)
        if skip:
            self._rewind(lane, end)
        self._engine.judge(lane)
        self._engine.wake(lane)

    async def _mark(self, lane: PushLane, to: Marks) -> Mark:
        """Where a rewind goes. Nothing that is yet to be routed may be skipped."""
        end = await self._lanes.end(lane.number)
        taken, wanted = lane.state.live.place, (await self._lanes.find(lane.number, to)).mark
        most = taken if before(end.position, taken) else end.position
        return (await self._lanes.find(lane.number, most)).mark if before(most, wanted.position) else wanted

    def _rewind(self, lane: PushLane, to: Mark) -> None:
        done = lane.state.low_water
        if lane.state.rewind(to):
            self._engine.ledger.leaving(lane, None)
        if lane.state.low_water.number > done.number:
            self._note_skipped(lane, done.position)
        lane.forget_read()
        self._engine.wake(lane)

    def _note_skipped(self, lane: PushLane, done: Position) -> None:
        """One record for all that lies between what was final and the new place."""
        now, upto = self._clock.now(), lane.state.low_water.position
        record = Attempted(lane.number, place_after(done), "skipped", 0, now, None, None, "skipped", upto=upto)
        self._engine.ledger.attempted(lane, record)

    async def _redeliver(self, lane: PushLane, positions: Sequence[Position], dead_letters: bool) -> str:
        dead = set(self._letters(lane, positions) if positions else ())
        asked = set(positions)
        marks = await marks_at(self._lanes, lane, asked)
        letters = await self._recall.first_of(lane, besides=dead) if dead_letters else None
        strangers = [position for position in sorted(asked - dead) if marks[position].number < 0]
        if strangers:
            return f"the subscription has no event at {strangers[0].offset}; nothing was sent again"
        if len(marks) > lane.state.room:
            return f"at most {lane.state.room} events can be sent again now, not {len(marks)}"
        for position in dead:
            self._engine.ledger.raised(lane, position)
        lane.tally.replays += 1
        lane.state.redeliver(marks.values(), self._clock.now())
        if letters is not None:
            self._recall.begin(lane, letters)
        self._engine.wake(lane)
        return ""

    def _letters(self, lane: PushLane, positions: Sequence[Position]) -> Sequence[Position]:
        """The dead letters at these positions; all of the lane when there are none. Without their copies: there may be many."""
        letters = self._store.letters(lane.number, (Stage.LYING, Stage.WAITING))
        chosen = frozenset(positions)
        return [position for position in letters if not chosen or position in chosen]
