"""What happened since the last save, gathered into one flush; and the loop that saves it in groups.

Ordered lanes wait for their saves, so these come at once, back to back, and hold only such lanes. The rest, such as the retries of
bad endpoints, is saved once an interval.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from tidings.clock import Clock, Instant
from tidings.delivery.push.causes import target_of
from tidings.delivery.push.lane import Item
from tidings.delivery.push.pushing import PushLane
from tidings.delivery.push.store import Applied, Attempted, Burial, DeliveryStore, Firsts, Flush, LaneKey
from tidings.errors import LogUnavailable, tolerating
from tidings.log.position import Marks, Offset

logger = logging.getLogger("tidings.delivery")

TRIM_SLICES = 100

MOST_UNSAVED = 50_000
"""Records that may wait for a save; beyond that no new attempts begin until they are saved."""

MOST_COPIED = 64 << 20
"""The same for bytes of dead letters: each holds its own copy of an event."""


class Notes:
    """What happened in one lane since it was last saved."""

    __slots__ = ("attempts", "burials", "lane", "raised", "recalled", "released")

    def __init__(self, lane: PushLane) -> None:
        self.lane = lane
        self.attempts: list[Attempted] = []
        self.burials: list[Burial] = []
        self.raised: list[Offset] = []
        self.recalled = False
        self.released: list[Offset] = []


class Ledger:
    """Gathers, lane by lane. Everything here is lost in a crash, and then happens again."""

    def __init__(self) -> None:
        self.wanted = asyncio.Event()
        self.urgent = asyncio.Event()
        self._notes: dict[LaneKey, Notes] = {}
        self._attempts = self._copied = 0
        self._applied: list[Applied] = []
        self._commands: Marks | None = None
        self._leaving: list[tuple[PushLane, Item]] = []
        self._being_saved: list[tuple[PushLane, Item]] = []
        self.open_items = 0

    @property
    def full(self) -> bool:
        return self._attempts >= MOST_UNSAVED or self._copied >= MOST_COPIED

    def touch(self, lane: PushLane) -> None:
        """The lane's state changed."""
        if lane.key not in self._notes:
            self._notes[lane.key] = Notes(lane)
            self.wanted.set()

    def attempted(self, lane: PushLane, record: Attempted) -> None:
        self._of(lane).attempts.append(record)
        self._attempts += 1

    def buried(self, lane: PushLane, burial: Burial) -> None:
        self._of(lane).burials.append(burial)
        self._copied += _copied_in(burial)

    def raised(self, lane: PushLane, offset: Offset) -> None:
        """A dead letter is sent again: hidden, its copy kept."""
        self._of(lane).raised.append(offset)

    def recalled(self, lane: PushLane) -> None:
        """All dead letters of the lane are to be sent again; those that are not raised wait for their turn."""
        self._of(lane).recalled = True

    def released(self, lane: PushLane, offset: Offset) -> None:
        """A dead letter and its copy are no longer needed."""
        self._of(lane).released.append(offset)

    def leaving(self, lane: PushLane, item: Item) -> None:
        """An item of an ordered lane is final. Others wait for that to be saved, so it is saved at once."""
        self._leaving.append((lane, item))
        self.touch(lane)
        self.urgent.set()

    def saved(self) -> Sequence[tuple[PushLane, Item]]:
        """What was collected last is durable: the items whose lines may move on."""
        left, self._being_saved = self._being_saved, []
        return left

    def applied(self, command: Applied) -> None:
        self._applied.append(command)
        self.wanted.set()

    def commands_read(self, upto: Marks) -> None:
        self._commands = upto
        self.wanted.set()

    def is_applied(self, command_id: str) -> bool:
        return any(applied.id == command_id for applied in self._applied)

    def collect(self, at: Instant) -> Flush | None:
        """Everything since the last call as one flush; None when there is nothing."""
        if not self.wanted.is_set():
            return None
        notes, self._notes = list(self._notes.values()), {}
        applied, self._applied = self._applied, []
        commands, self._commands = self._commands, None
        return self._flush(notes, applied, commands, at)

    def collect_urgent(self, at: Instant) -> Flush | None:
        """The lanes in which somebody waits for the save; what lanes without order have gathered would only hold it up.

        Everything, when commands were applied: they are saved together with all lanes that they changed.
        """
        if self._applied or self._commands is not None:
            return self.collect(at)
        keys = dict.fromkeys(lane.key for lane, _ in self._leaving)
        return self._flush([self._notes.pop(key) for key in keys], [], None, at) if keys else None

    def _of(self, lane: PushLane) -> Notes:
        self.touch(lane)
        return self._notes[lane.key]

    def _flush(self, notes: Sequence[Notes], applied: Sequence[Applied], commands: Marks | None, at: Instant) -> Flush:
        self.urgent.clear()
        if not self._notes and not self._applied and self._commands is None:
            self.wanted.clear()
        self._being_saved += self._leaving
        self._leaving = []
        flush = Flush(
            lanes=[one.lane.saved() for one in notes],
            firsts={one.lane.key: _firsts_of(one.lane) for one in notes if one.lane.firsts.offsets},
            attempts=[attempt for one in notes for attempt in one.attempts],
            burials=[burial for one in notes for burial in one.burials],
            raised=[(one.lane.key, offset) for one in notes for offset in one.raised],
            recalled=[one.lane.key for one in notes if one.recalled],
            released=[(one.lane.key, offset) for one in notes for offset in one.released],
            applied=applied,
            commands=commands,
            at=at,
        )
        self._attempts -= len(flush.attempts)
        self._copied -= sum(map(_copied_in, flush.burials))
        for lane in (one.lane for one in notes):
            # What a deleted lane has open is never sent: it must not count against the others.
            size = 0 if lane.deleted else lane.state.size
            self.open_items += size - lane.counted
            lane.counted = size
        return flush


def _copied_in(burial: Burial) -> int:
    return len(burial.head) + len(burial.data or b"")


def _firsts_of(lane: PushLane) -> Firsts:
    firsts, lane.firsts = lane.firsts, Firsts()
    if lane.policy is not None:
        firsts.target = target_of(lane.policy.url)
    return firsts


class Saver:
    """Saves what the ledger gathered, on a thread of its own, one flush at a time."""

    def __init__(self, ledger: Ledger, store: DeliveryStore, clock: Clock, interval: float) -> None:
        self._ledger = ledger
        self._store = store
        self._clock = clock
        self._interval = interval
        self._pause = interval
        self._turn = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="delivery-save")
        self._unsaved: Flush | None = None
        self._writing: Future[None] | None = None
        self.on_trouble: Callable[[str], None] = lambda reason: None
        self.on_saved: Callable[[], None] = lambda: None

    async def run(self) -> None:
        """Save whenever something happened: at once where somebody waits for it, the rest once an interval.

        An idle engine sleeps here.
        """
        while True:
            await self._ledger.wanted.wait()
            if not await self._saved_urgently(self._clock.monotonic() + self._pause):
                await self.save()

    async def _saved_urgently(self, until: float) -> bool:
        """Save what somebody waits for, group after group, until then. Whether that was all there is."""
        while (left := until - self._clock.monotonic()) > 0:
            try:
                # Not `wait_for`: its task would cost two more rounds of a loop that may be busy.
                async with asyncio.timeout(left):
                    await self._ledger.urgent.wait()
            except TimeoutError:
                return False
            await self._save(lambda: self._ledger.collect_urgent(self._clock.now()))
            if not self._ledger.wanted.is_set():
                return True
        return False

    async def save(self) -> None:
        """Everything that happened before this call is durable when it returns."""
        await self._save(self._gathered)

    async def _save(self, gather: Callable[[], Flush | None]) -> None:
        async with self._turn:
            # A flush that failed comes first: what happened since builds on it.
            if self._unsaved is not None:
                await self._save_surely()
            self._unsaved = gather()
            if self._unsaved is not None:
                await self._save_surely()

    async def trim(self, before: Instant) -> None:
        """Remove old records, some slices of them. Saves pass between any two."""
        try:
            for _ in range(TRIM_SLICES):
                async with self._turn:
                    if not await self._on_thread(self._store.trim, before):
                        return
        except LogUnavailable as error:
            logger.warning("%s", error)

    async def close(self, patience: float = 5.0) -> None:
        """Save what there is, if that is possible within `patience` seconds, and end the thread."""
        with tolerating(TimeoutError, doing="the last save of the delivery state"):
            await asyncio.wait_for(self.save(), patience)
        self._thread.shutdown()

    def _gathered(self) -> Flush | None:
        began = self._clock.monotonic()
        flush = self._ledger.collect(self._clock.now())
        # Gathering large states must not take more than a tenth of the loop's time.
        self._pause = max(self._interval, 10 * (self._clock.monotonic() - began))
        return flush

    async def _save_surely(self) -> None:
        """Try until the flush is saved; meanwhile no new attempts begin."""
        failed = False
        while True:
            try:
                await self._written(self._unsaved)
                break
            except LogUnavailable as error:
                failed = True
                self.on_trouble(str(error))
            await asyncio.sleep(1)
        self._unsaved = None
        if failed:
            self.on_trouble("")
        self.on_saved()

    async def _written(self, flush: Flush | None) -> None:
        """The flush is on disk. Written once, also where whoever waits for it is interrupted and the next one waits on."""
        assert flush is not None
        if self._writing is None or self._writing.cancelled():
            self._writing = self._thread.submit(self._store.save, flush)
        try:
            await asyncio.wrap_future(self._writing)
        except LogUnavailable:
            self._writing = None
            raise
        self._writing = None

    async def _on_thread(self, call: Callable[..., object], *values: object) -> object:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call, *values)
