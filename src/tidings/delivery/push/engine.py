"""The push engine: owns all pushed lanes, makes attempts concurrently and fairly, and never waits for one lane.

Only lanes with work cost anything: the lanes' touched record says where work is, a timer heap says what is due, and as many
workers run as there are attempts on their way. Whatever is not saved when the process dies is sent again.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
from collections.abc import Callable, Iterable

import msgspec

from tidings.clock import Clock
from tidings.config import PushSettings
from tidings.delivery.push.breaker import Status
from tidings.delivery.push.breakers import Breakers
from tidings.delivery.push.choosing import Choosing
from tidings.delivery.push.credentials import access_of, awaits_consent
from tidings.delivery.push.decide import BAD_URL, DeadLetter, Disable, Outcome, Park, RetryAt, Verdict
from tidings.delivery.push.lane import DUE, Item, LaneState, decode
from tidings.delivery.push.ledger import Ledger, Saver
from tidings.delivery.push.policy import policy_of, stream_policy
from tidings.delivery.push.pushing import EXPIRED, Job, Parcel, PushLane
from tidings.delivery.push.reading import Reading
from tidings.delivery.push.schedule import Schedule
from tidings.delivery.push.sender import Sender, Target
from tidings.delivery.push.settling import Copies, Settling
from tidings.delivery.push.store import DeliveryStore, LaneKey, SavedLane, Tally
from tidings.delivery.push.timers import Timers
from tidings.errors import LogUnavailable
from tidings.ids import DeliveryIds
from tidings.log.port import LanesReader, LogReader
from tidings.log.position import EMBEDDED, LaneNumber
from tidings.observe.board import Board
from tidings.registry.model import Push, Snapshot, Stream, Subscription
from tidings.registry.rules.entitlements import entitlement
from tidings.registry.rules.retentions import Kept, Retentions

logger = logging.getLogger("tidings.delivery")

BURST = 64
"""Attempts begun in one go; then the event loop gets to see what else there is."""

LONGEST_ALARM = 3600.0
LONGEST_WAIT = 15 * 86400.0
"""No policy can ask for a longer wait between two tries."""

TOO_MUCH = frozenset((429, 502, 503, 504))
"""Answers of an endpoint that has more to do than it can (WH-24)."""


class Engine:
    """Delivers. Made once; `start`, then `look_at` and `adopt` as work and changes come, then `stop`."""

    def __init__(
        self, settings: PushSettings, lanes: LanesReader, log: LogReader, store: DeliveryStore, sender: Sender, around: Around
    ) -> None:
        self._settings = settings
        self._store = store
        self._sender = sender
        self._clock = around.clock
        self._board = around.board
        self._lanes: dict[LaneNumber, PushLane] = {}
        self._adopted: dict[LaneNumber, tuple[Subscription, Kept, str]] = {}
        self._loaded: dict[LaneKey, SavedLane] = {}
        self._retention = around.retention
        self.mine = around.mine
        self._workers: set[asyncio.Task[None]] = set()
        self._stopping = False
        self._burst_planned = False
        self.ledger = Ledger()
        self.saver = Saver(self.ledger, store, around.clock, settings.save_interval)
        self.saver.on_saved = self._saved
        self.saver.on_trouble = self.hold
        self._schedule = Schedule(settings.total_inflight)
        self._timers = Timers(around.clock, self._item_due)
        self._settling = Settling(self.ledger, self._timers, around.board, around.clock, around.chance)
        self.reading = Reading(lanes, log, store, around.ids, self._settling.missed, around.hub)
        self._copies = Copies(lanes, log, store)
        self._choosing = Choosing(self.reading, self.ledger, around.clock)
        self._choosing.aside = self.set_aside
        self._choosing.alarm = self._alarm
        self._choosing.missed = self.missed = self._settling.missed
        self.breakers = Breakers(self, sender, lanes, around.clock)

    def start(self, saved: dict[LaneKey, SavedLane], snapshot: Snapshot) -> None:
        """Go on where the last save stopped."""
        self._loaded = dict(saved)
        self.adopt(snapshot)
        known = {subscription.lane for subscription in snapshot.subscriptions.values()}
        for key, lane in saved.items():
            if key.lane not in known and lane.state != "deleted" and self.mine(key.lane):
                self._delete(self._made(key, f"lane {key.lane}"))

    def adopt(self, snapshot: Snapshot) -> None:
        """Deliver by what is in force now: new lanes are looked at, changed ones follow, deleted ones end."""
        present = set()
        retentions = Retentions(snapshot, self._retention)
        for subscription in snapshot.subscriptions.values():
            if self.mine(subscription.lane):
                present.add(subscription.lane)
                self._adopt(subscription, retentions.of(subscription), entitlement(snapshot, subscription).bar)
        for number in [number for number in self._lanes if number not in present]:
            self._adopted.pop(number, None)
            self._delete(self._lanes.pop(number))

    def lane(self, number: LaneNumber) -> PushLane | None:
        """The lane of a subscription that is in force."""
        return self._lanes.get(number)

    def all_lanes(self) -> Iterable[LaneNumber]:
        return list(self._lanes)

    def look_at(self, numbers: Iterable[LaneNumber]) -> None:
        """These lanes may have new entries."""
        for number in numbers:
            lane = self._lanes.get(number)
            if lane is not None:
                lane.more = True
                self._schedule.offer(lane)
        self._begin_more()

    def wake(self, lane: PushLane, due: Iterable[Item] = ()) -> None:
        """The lane's state was changed from outside: save it and see what there is to send."""
        for item in due:
            self._item_due(lane, item)
        self.ledger.touch(lane)
        self._schedule.offer(lane)
        self._begin_more()

    def hold(self, reason: str) -> None:
        """Begin no attempts while there is a reason; "" lets them begin again."""
        self._schedule.held = bool(reason)
        if reason:
            self._board.not_ready(reason)
        else:
            self._board.ready()
            self._begin_more()

    def show(self) -> None:
        """Bring the figures on the board up to date."""
        self._settling.show()
        self._board.gauge("tidings_inflight", self._schedule.busy)
        self._board.gauge("tidings_open_items", self.ledger.open_items)
        for lane in self._lanes.values():
            if lane.tally.delivered != lane.reported:
                self._board.count("tidings_delivered_total", lane.tally.delivered - lane.reported, subscription=lane.name)
                lane.reported = lane.tally.delivered
            if lane.inflight and lane.told != lane.state.cursor:
                # Saved, so that what is on its way reads as such although nothing has come of it for a while.
                lane.told = lane.state.cursor
                self.ledger.touch(lane)

    @property
    def holding(self) -> bool:
        """Whether nothing more may be sent now: what was sent is not saved yet."""
        return self._schedule.held or self.ledger.full or self._stopping

    def judge(self, lane: PushLane) -> None:
        """What keeps the lane from sending may have changed: send, or look again when its time has come."""
        wait = lane.judge(self._clock.now())
        if wait:
            self._alarm(lane, wait)
        self._schedule.offer(lane)
        self._plan_burst()

    async def stop(self, patience: float) -> None:
        """Begin nothing more, let what is on its way finish for `patience` seconds, save. The rest is sent again later."""
        self._stopping = True
        self._timers.close()
        await self.breakers.close()
        if self._workers:
            await asyncio.wait(self._workers, timeout=patience)
        for worker in list(self._workers):
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)
        await self.saver.close()

    # ---- lanes come, change and go

    def _adopt(self, subscription: Subscription, kept: Kept, bar: str) -> None:
        if self._adopted.get(subscription.lane) == (subscription, kept, bar):
            return
        self._adopted[subscription.lane] = subscription, kept, bar
        push = subscription.delivery
        policy = None
        if isinstance(push, Push) and not awaits_consent(push):
            policy = msgspec.structs.replace(policy_of(push, self._settings, kept), access=access_of(subscription))
        elif isinstance(push, Stream):
            policy = stream_policy(push, kept)
        lane = self._lanes.get(subscription.lane)
        if lane is None:
            longest = policy.retry.longest_wait if policy is not None else LONGEST_WAIT
            lane = self._made(LaneKey(subscription.lane, EMBEDDED), str(subscription.name), longest)
            self._lanes[subscription.lane] = lane
        barred = lane.bar(bar, self._clock.now())
        if lane.adopt(policy, self._clock.now()) or barred:
            self.breakers.adopt(lane)
            if lane.listener is not None and not lane.streaming:
                lane.listener.leave()
            self.judge(lane)

    def _made(self, key: LaneKey, name: str, longest: float = LONGEST_WAIT) -> PushLane:
        saved = self._loaded.pop(key, None)
        limit = self._settings.open_items
        state = decode(saved.body, limit) if saved else LaneState(limit=limit)
        lane = PushLane(key, name, state, saved.tally if saved else Tally())
        lane.counted = lane.state.size
        self.ledger.open_items += lane.counted
        for item in lane.state.items():
            self._timers.add(lane, item, longest)
        return lane

    def _delete(self, lane: PushLane) -> None:
        """No new attempts; what is on its way finishes. The state stays, marked, until its records are trimmed."""
        lane.delete()
        if lane.listener is not None:
            lane.listener.leave()
        self.breakers.forget(lane)
        self.ledger.touch(lane)

    # ---- attempts

    def _plan_burst(self) -> None:
        if not self._burst_planned and not self._stopping:
            self._burst_planned = True
            asyncio.get_running_loop().call_soon(self._begin_more)

    def _begin_more(self) -> None:
        """Begin attempts for everything that may go now, one worker each."""
        self._burst_planned = False
        for _ in range(BURST):
            job = self._next()
            if job is None:
                return
            worker = asyncio.create_task(self._work(job))
            self._workers.add(worker)
            worker.add_done_callback(self._workers.discard)
        self._plan_burst()

    async def _work(self, job: Job | None) -> None:
        """Make attempts, one after the other, as long as somebody has a turn."""
        while job is not None:
            lane, items, parcel = job
            parcel.headers["tidings-attempt"] = str(items[0].tries + 1)
            target = lane.target or self._target_of(lane)
            try:
                outcome = await self._sender.send(target, parcel.headers, parcel.body) if target else await self._no_target()
            except Exception:  # the top of a task: one bad attempt must not take a slot with it for ever
                logger.exception("an attempt for %s failed inside the hub", lane.name)
                outcome = Outcome(cause="internal-error")
            self._schedule.end(lane, outcome.status is not None, outcome.status in TOO_MUCH, outcome.duration)
            self._follow(job, self._settling.settle(lane, items, parcel, outcome))
            self._schedule.offer(lane)
            job = self._next()

    def _follow(self, job: Job, verdict: Verdict) -> None:
        """Do what a verdict asks for beyond the items themselves."""
        lane, items, _ = job
        match verdict:
            case RetryAt(at, pause=True):
                lane.state.paused_until = max(lane.state.paused_until, at)
                self.judge(lane)
            case DeadLetter(reason):
                for item in items:
                    self._bury(lane, item, reason)
            case Park():
                self.breakers.open(lane, items[0].offset)
            case Disable(reason):
                self.disable(lane, reason)
        if lane.batch is not None and lane.batch.items is items and not any(map(lane.state.holds, items)):
            lane.batch.leaving = True
        if lane.state.breaker.status is Status.REPUBLISHING:
            self.breakers.progress(lane)

    def disable(self, lane: PushLane, reason: str) -> None:
        """Send nothing more to the subscription until it is enabled; its lane waits."""
        lane.state.disabled = reason
        self.ledger.touch(lane)
        self.judge(lane)

    def _target_of(self, lane: PushLane) -> Target | None:
        """Where the lane's attempts go; None: its address cannot be read."""
        policy = lane.policy
        try:
            lane.target = None if policy is None else Target(policy.url, *policy.patience, access=policy.access)
        except ValueError:
            lane.target = None
        return lane.target

    async def _no_target(self) -> Outcome:
        await asyncio.sleep(0)
        return Outcome(cause=BAD_URL)

    def _next(self) -> Job | None:
        """The next attempt, of the lane whose turn it is."""
        if self._stopping or self.ledger.full:
            return None
        for _ in range(BURST):
            lane = self._schedule.turn()
            if lane is None:
                return None
            try:
                job = self._choosing.next_of(lane)
            except LogUnavailable as error:
                self._rest(lane, str(error))
                continue
            if job is not None:
                for item in job.items:
                    item.sending = True
                lane.pace.sent(self._clock.monotonic())
                self._schedule.begin(lane)
                self._schedule.offer(lane)
                return job
            if lane.state.breaker.status is Status.REPUBLISHING:
                self.breakers.progress(lane)
        self._plan_burst()
        return None

    def streamed(self, lane: PushLane, item: Item, parcel: Parcel, duration: float) -> None:
        """The reader of a stream has taken the entry."""
        self._settling.settle(lane, (item,), parcel, Outcome(status=200, duration=duration))

    def set_aside(self, lane: PushLane, item: Item, fault: str) -> None:
        """The entry cannot be sent: record it as what it is."""
        if fault == EXPIRED:
            self._settling.expire(lane, item)
        else:
            self._settling.unreadable(lane, item, fault)
            self._bury(lane, item, fault)

    def _bury(self, lane: PushLane, item: Item, reason: str) -> None:
        try:
            copy = self._copies.of(lane, item.offset)
        except LogUnavailable:
            # A dead letter without its event would be a loss; one attempt too many is not.
            self._settling.put_off(lane, item, 1.0)
        else:
            self._settling.bury(lane, item, reason, copy)

    def _item_due(self, lane: PushLane, item: Item) -> None:
        item.due = DUE
        lane.due.append(item)
        self._schedule.offer(lane)
        self._plan_burst()

    def _saved(self) -> None:
        """A save is durable: lines move on, and what waited for room begins."""
        for lane, item in self.ledger.saved():
            self._left(lane, item)
        self._begin_more()

    def _left(self, lane: PushLane, item: Item) -> None:
        head = lane.gate.leave(item) if lane.gate.ordered else None
        if head is not None and not head.sending and lane.state.holds(head):
            parcel = lane.held.pop(head.offset, None)
            if parcel is not None:
                lane.loaded.append((head, parcel))
            elif head.due <= self._clock.now():
                lane.due.append(head)
        if lane.batch is not None and lane.batch.leaving:
            lane.batch = None
        self._schedule.offer(lane)

    def _alarm(self, lane: PushLane, seconds: float) -> None:
        """Look at the lane again after a while, or earlier if that was planned already."""
        loop = asyncio.get_running_loop()
        at = loop.time() + min(seconds, LONGEST_ALARM)
        if at < lane.alarm and not self._stopping:
            lane.alarm = at
            loop.call_at(at, self._ring, lane, at)

    def _ring(self, lane: PushLane, at: float) -> None:
        if lane.alarm == at:
            lane.alarm = math.inf
            self.judge(lane)

    def _rest(self, lane: PushLane, reason: str) -> None:
        """The log cannot be read now; look at the lane again in a moment."""
        logger.warning("lane %s cannot be read: %s", lane.name, reason)
        asyncio.get_running_loop().call_later(1.0, self.look_at, [lane.key.lane])


class Around:
    """What the engine is given from around it: time, chance, ids, the board for its figures, how long topics
    keep events, the hub's own address, and which lanes are this worker's own.
    """

    def __init__(
        self,
        clock: Clock,
        board: Board,
        ids: DeliveryIds,
        chance: Callable[[], float] = random.random,
        retention: float = math.inf,
        hub: str = "",
    ) -> None:
        self.hub = hub
        self.mine: Callable[[LaneNumber], bool] = lambda lane: True
        self.retention = retention
        self.clock = clock
        self.board = board
        self.ids = ids
        self.chance = chance
