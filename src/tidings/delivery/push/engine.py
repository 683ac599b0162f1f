"""The push engine: owns all pushed lanes, makes attempts concurrently and fairly, and never waits for one lane.

Only lanes with work cost anything: the lanes' own record says where work is, an alarm says when a lane has something due, and as
many workers run as there are attempts on their way. Whatever is not saved when the process dies is sent again.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Iterable, Sequence

import msgspec

from tidings.clock import Instant
from tidings.config import PushSettings
from tidings.delivery.push.around import Around
from tidings.delivery.push.attempts import Attempts
from tidings.delivery.push.breakers import Breakers
from tidings.delivery.push.egress.probes import Probes
from tidings.delivery.push.egress.sender import Sender
from tidings.delivery.push.fair_schedule import Schedule
from tidings.delivery.push.lane.batches import batch_of
from tidings.delivery.push.lane.breaker import Status
from tidings.delivery.push.lane.choice import Attempt, Load, Refill, Take, Wait, choose, takes_next
from tidings.delivery.push.lane.entries import EXPIRED, Item, Parcel
from tidings.delivery.push.lane.push_lane import EndpointStanding, Job, PushLane
from tidings.delivery.push.lane.saved import decode
from tidings.delivery.push.lane.state import LaneState
from tidings.delivery.push.lane.window import Window
from tidings.delivery.push.lane_sweep import neglected
from tidings.delivery.push.ledger import Ledger
from tidings.delivery.push.outcomes import Outcomes
from tidings.delivery.push.policy.decision import DisableLane, Outcome, Park, RetryAt, Verdict
from tidings.delivery.push.policy.policy import Policy, policy_of, stream_policy
from tidings.delivery.push.refills import Refills
from tidings.delivery.push.request.credentials import access_of, awaits_consent
from tidings.delivery.push.request.parcels import Parcels
from tidings.delivery.push.saver import Saver
from tidings.delivery.push.store import DeliveryStore, LaneTally, SavedLane
from tidings.errors import Misconfigured
from tidings.lanes.port import Lanes
from tidings.log.position import LaneNumber
from tidings.registry.model import Push, Snapshot, Stream, Subscription
from tidings.registry.rules.entitlements import entitlement
from tidings.registry.rules.retention import RetentionPeriod, Retentions

logger = logging.getLogger("tidings.delivery")

BURST = 64
SLOW_BURST = 4
"""Attempts begun in one pass of the event loop, and those among them of endpoints that answer late or not at all. Every step of an
ordered lane waits for a pass: those that fail at once must not make it long.
"""

LONGEST_ALARM = 3600.0
LONGEST_WAIT = 15 * 86400.0
"""No policy can ask for a longer wait between two tries."""

OPEN_IN_ALL = 200_000
OPEN_ALWAYS = 10
"""When more items than OPEN_IN_ALL are open, a lane with OPEN_ALWAYS or more takes no live entries."""

TOO_MUCH = frozenset((429, 502, 503, 504))
"""Answers of an endpoint that has more to do than it can (WH-24)."""


class Engine:
    """Delivers. Made once; `start`, then `look_at` and `adopt` as work and changes come, then `stop`."""

    def __init__(self, settings: PushSettings, lanes: Lanes, store: DeliveryStore, sender: Sender, around: Around) -> None:
        self._settings = settings
        self._source = lanes
        self._attempts = Attempts(sender)
        self._clock = around.clock
        self._board = around.board
        self._lanes: dict[LaneNumber, PushLane] = {}
        self._adopted: dict[LaneNumber, tuple[Subscription, RetentionPeriod, str]] = {}
        self._loaded: dict[LaneNumber, SavedLane] = {}
        self._retention = around.retention
        self._formats = around.formats
        self.mine = around.mine
        self._workers: set[asyncio.Task[None]] = set()
        self._stopping = False
        self._burst_planned = False
        self._begun = self._made_new = self._slow_begun = 0
        self.ledger = Ledger()
        self.saver = Saver(self.ledger, store, around.clock, settings.save_interval)
        self.saver.on_saved = self._saved
        self.saver.on_trouble = self.hold
        self._schedule = Schedule(settings.total_inflight)
        self._outcomes = Outcomes(self.ledger, around.board, around.clock, around.chance)
        self.parcels = Parcels(lanes, store, around.ids)
        self._refills = Refills(self.parcels, self._outcomes, self._offer)
        self._probing = Probes(sender, around.clock, self._probed)
        self._breakers = Breakers(self.ledger, self._probing, around.clock)

    def start(self, saved: dict[LaneNumber, SavedLane], snapshot: Snapshot) -> None:
        """Go on where the last save stopped."""
        self._loaded = dict(saved)
        self.adopt(snapshot)
        known = {subscription.lane for subscription in snapshot.subscriptions.values()}
        for number, lane in saved.items():
            if number not in known and lane.state != "deleted" and self.mine(number):
                self._delete(self._made(number, f"lane {number}"))

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
                lane.state.windows[-1].more = True
                self._schedule.offer(lane)
        self._begin_more()

    def wake(self, lane: PushLane) -> None:
        """The lane's state was changed from outside: save it and see what there is to send."""
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
        self._outcomes.show()
        self._board.gauge("tidings_inflight", self._schedule.busy)
        self._board.gauge("tidings_open_items", self.ledger.open_items)
        for lane in self._lanes.values():
            if lane.inflight and lane.shown != lane.state.live.cursor:
                # Saved, so that what is on its way reads as such although nothing has come of it for a while.
                lane.shown = lane.state.live.cursor
                self.ledger.touch(lane)

    def sweep(self) -> None:
        """Find lanes with something to send that nobody sends: that is a fault of ours. Say so, and send it."""
        if self.holding:
            return
        now, at = self._clock.now(), self._clock.monotonic()
        for lane in self._lanes.values():
            if neglected(lane, now, at, saving=self.ledger.waits_for(lane)):
                logger.error("lane %s had something to send and nobody sent it; it is sent now", lane.name)
                self._board.count("tidings_lanes_healed_total")
                lane.state.heal()
                lane.forget_read()
                self.judge(lane)

    @property
    def holding(self) -> bool:
        """Whether nothing more may be sent now: what was sent is not saved yet."""
        return self._schedule.held or self.ledger.full or self._stopping

    def judge(self, lane: PushLane) -> None:
        """What keeps the lane from sending may have changed: send, or look again when its time has come."""
        wait = lane.judge(self._clock.now())
        if wait:
            self._alarm(lane, wait)
        self._offer(lane)

    async def stop(self, patience: float) -> None:
        """Begin nothing more, let what is on its way finish for `patience` seconds, save. The rest is sent again later."""
        self._stopping = True
        await self._probing.close()
        await self._refills.close()
        if self._workers:
            await asyncio.wait(self._workers, timeout=patience)
        for worker in list(self._workers):
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)
        await self.saver.close()

    # ---- lanes come, change and go

    def _adopt(self, subscription: Subscription, kept: RetentionPeriod, bar: str) -> None:
        if self._adopted.get(subscription.lane) == (subscription, kept, bar):
            return
        self._adopted[subscription.lane] = subscription, kept, bar
        policy = self._policy(subscription, kept)
        lane = self._lanes.get(subscription.lane)
        if lane is None:
            longest = policy.retry.longest_wait if policy is not None else LONGEST_WAIT
            lane = self._made(subscription.lane, str(subscription.name), longest)
            self._lanes[subscription.lane] = lane
        barred = lane.bar(bar, self._clock.now())
        if policy != lane.policy or barred:
            if policy != lane.policy and lane.adopt(policy, self._clock.now()):
                self.ledger.leaving(lane, None)
            self._breakers.adopt(lane)
            if lane.listener is not None and not lane.streaming:
                lane.listener.leave()
            self.judge(lane)

    def _policy(self, subscription: Subscription, kept: RetentionPeriod) -> Policy | None:
        """How a subscription is delivered; None: nothing may begin now."""
        delivery = subscription.delivery
        if isinstance(delivery, Stream):
            return stream_policy(kept)
        if not isinstance(delivery, Push) or awaits_consent(delivery):
            return None
        try:
            own = self._formats.of(delivery.layout)
        except Misconfigured as error:
            logger.error("nothing is sent for %s: %s", subscription.name, error)
            return None
        access = access_of(subscription, None if own is None else own.credential)
        return msgspec.structs.replace(policy_of(delivery, self._settings, kept, own), access=access)

    def _made(self, number: LaneNumber, name: str, longest: float = LONGEST_WAIT) -> PushLane:
        saved = self._loaded.pop(number, None)
        limit = self._settings.open_items
        state = decode(saved.body, (row for _, row in saved.items), limit) if saved else LaneState(limit=limit)
        state.arm(self._clock.now(), self._clock.monotonic(), longest)
        lane = PushLane(number, name, state, saved.tally if saved else LaneTally())
        lane.counted = lane.state.size
        self.ledger.open_items += lane.counted
        return lane

    def _delete(self, lane: PushLane) -> None:
        """No new attempts; what is on its way finishes. The state stays, marked, until its records are trimmed."""
        lane.delete()
        if lane.listener is not None:
            lane.listener.leave()
        self._breakers.forget(lane)
        self.ledger.touch(lane)

    # ---- attempts

    def _offer(self, lane: PushLane) -> None:
        self._schedule.offer(lane)
        self._plan_burst()

    def _plan_burst(self) -> None:
        if not self._burst_planned and not self._stopping:
            self._burst_planned = True
            asyncio.get_running_loop().call_soon(self._next_burst)

    def _next_burst(self) -> None:
        """Another pass of the event loop has begun. New workers get what the running ones left over in the last one: those go on by
        themselves, and one that found nothing left would end only to be made anew.
        """
        self._burst_planned = False
        self._begun, self._made_new, self._slow_begun = self._begun - self._made_new, 0, 0
        self._begin_more()
        self._begun = self._made_new

    def _begin_more(self) -> None:
        """Begin attempts for everything that may go now, one worker each."""
        while (job := self._next()) is not None:
            self._made_new += 1
            worker = asyncio.create_task(self._work(job))
            self._workers.add(worker)
            worker.add_done_callback(self._workers.discard)

    async def _work(self, job: Job | None) -> None:
        """Make attempts, one after the other, as long as somebody has a turn."""
        while job is not None:
            lane = job.lane
            try:
                outcome = await self._attempts.made(job)
            except Exception:  # the top of a task: one bad attempt must not take a slot with it for ever
                logger.exception("an attempt for %s failed inside the hub", lane.name)
                outcome = Outcome(cause="internal-error")
            self._schedule.end(lane, outcome.status is not None, outcome.status in TOO_MUCH, outcome.duration)
            self._follow(job, self._outcomes.apply(job, outcome))
            self._schedule.offer(lane)
            job = self._next()

    def _follow(self, job: Job, verdict: Verdict) -> None:
        """Do what a verdict asks for beyond the items themselves."""
        lane = job.lane
        match verdict:
            case RetryAt(at, pause=True):
                lane.state.paused_until = max(lane.state.paused_until, at)
                self.judge(lane)
            case Park():
                if self._breakers.open(lane, job.items[0].position):
                    self.judge(lane)
            case DisableLane(reason):
                self.disable(lane, reason)
        if lane.state.breaker.status is Status.REPUBLISHING:
            self._progress(lane)

    def disable(self, lane: PushLane, reason: str) -> None:
        """Send nothing more to the subscription until it is enabled; its lane waits."""
        lane.state.disabled = reason
        self.ledger.touch(lane)
        self.judge(lane)

    def close_breaker(self, lane: PushLane) -> None:
        """Send what waits behind the lane's breaker."""
        if self._breakers.close(lane):
            self.judge(lane)

    async def _probed(self, lane: PushLane, outcome: Outcome) -> None:
        end = await self._source.end(lane.number)
        if self._breakers.probed(lane, outcome, end):
            self.judge(lane)

    def _progress(self, lane: PushLane) -> None:
        if self._breakers.progress(lane):
            self.judge(lane)

    def _next(self) -> Job | None:
        """The next attempt, of the lane whose turn it is."""
        if self._stopping or self.ledger.full:
            return None
        for _ in range(BURST if self._begun < BURST else 0):
            lane = self._schedule.turn(slow=self._slow_begun < SLOW_BURST)
            if lane is None and self._slow_begun < SLOW_BURST:
                return None
            if lane is None:
                break
            job = self._job(lane)
            if job is not None:
                self._plan_burst()
                self._begun += 1
                self._slow_begun += lane.standing is EndpointStanding.SLOW
                if lane.pace.limited:
                    lane.pace.sent(self._clock.monotonic())
                self._schedule.begin(lane)
                self._schedule.offer(lane)
                return job
            if lane.state.breaker.status is Status.REPUBLISHING:
                self._progress(lane)
        self._plan_burst()
        return None

    def _job(self, lane: PushLane) -> Job | None:
        """The lane's next attempt; None: there is nothing now, and the lane is offered again when there is."""
        policy = lane.policy
        if policy is None:
            return None
        wait = lane.pace.wait(self._clock.monotonic()) if lane.pace.limited or policy.pace.adaptive else 0.0
        if wait > 0:
            self._alarm(lane, wait)
            return None
        items = self.pick(lane)
        if items is None:
            return None
        if policy.batch is not None:
            lane.state.seal(items)
            parcel = batch_of(policy, policy.batch, [_parcel(item) for item in items])
        else:
            parcel = _parcel(items[0])
        return Job(lane, items, parcel, policy)

    def pick(self, lane: PushLane) -> Sequence[Item] | None:
        """What goes out next of a lane, as an attempt that has begun; None: nothing now."""
        policy, state = lane.policy, lane.state
        if policy is None:
            return None
        now, at = self._clock.now(), self._clock.monotonic()
        plain = policy.batch is None and not policy.sending_delay
        while True:
            take = self._may_take(state, policy)
            if plain and take and takes_next(state):
                # What `choose` would say for nearly every delivery, without asking it.
                item = self._take(lane, state.windows[-1], now, at)
                if not state.first_of_line(item):
                    continue
                items: Sequence[Item] = (item,)
            elif isinstance(choice := choose(state, lane.allowed(now, at, take), policy.batch), Take):
                item = self._take(lane, choice.window, now, at)
                for _ in range(choice.entries - 1):
                    self._take(lane, choice.window, now, at)
                if policy.batch is not None or not state.first_of_line(item):
                    continue
                items = (item,)
            elif isinstance(choice, Attempt):
                items = list(choice.items)
                if len(state.windows) > 1 and state.in_waited(items[0]):
                    lane.pace.back_sent(at)
            elif isinstance(choice, Refill):
                self._refills.refill(lane, choice.window)
                continue
            elif isinstance(choice, Load):
                self._refills.load(lane, choice.window, choice.items)
                continue
            else:
                if isinstance(choice, Wait):
                    self._alarm(lane, choice.until - at)
                return None
            if not self._set_aside(lane, items, now):
                state.begin(items)
                self._refills.keep_ahead(lane)
                return items

    def _take(self, lane: PushLane, window: Window, now: Instant, at: float) -> Item:
        """Open the next entry of a window."""
        parcel = window.ready.popleft()
        missed = parcel.number - window.cursor - 1
        after = window.place
        if window is lane.state.windows[-1]:
            lane.waited_turn = True
        else:
            lane.waited_turn = False
            lane.pace.back_sent(at)
        item = lane.state.take(window, parcel, now, at)
        if missed > 0:
            self._outcomes.missed(lane, missed, after, parcel.position)
        return item

    def _set_aside(self, lane: PushLane, items: Sequence[Item], now: Instant) -> bool:
        """Whether some of these cannot be sent; those are recorded as what they are."""
        one = items[0].parcel
        if len(items) == 1 and one is not None and not one.fault and one.until > now:
            return False
        bad = [item for item in items if (parcel := _parcel(item)).fault or parcel.until <= now]
        for item in bad:
            self._outcomes.set_aside(lane, item, _parcel(item).fault or EXPIRED)
        return bool(bad)

    def _may_take(self, state: LaneState, policy: Policy) -> bool:
        size = state.size
        # How much a stream may have open, its connection bounds.
        if not policy.streamed and len(state.windows[-1].open) >= policy.open_items:
            return False
        return size < state.limit and (size < OPEN_ALWAYS or self.ledger.open_items < OPEN_IN_ALL)

    # ---- streams

    def streamed(self, job: Job, duration: float) -> None:
        """The reader of a stream has taken the entry."""
        self._outcomes.apply(job, Outcome(status=200, duration=duration))

    def set_aside(self, lane: PushLane, item: Item, fault: str) -> None:
        """The entry cannot be sent: record it as what it is."""
        self._outcomes.set_aside(lane, item, fault)

    # ---- saves and alarms

    def _saved(self) -> None:
        """A save is durable: lines move on, and what waited for room begins."""
        for lane, items in self.ledger.saved():
            lane.state.saved(items)
            self._schedule.offer(lane)
        self._begin_more()

    def _alarm(self, lane: PushLane, seconds: float) -> None:
        """Look at the lane again after a while, or earlier if that was planned already."""
        loop = asyncio.get_running_loop()
        at = loop.time() + min(max(0.0, seconds), LONGEST_ALARM)
        if at < lane.alarm and not self._stopping:
            lane.alarm = at
            loop.call_at(at, self._ring, lane, at)

    def _ring(self, lane: PushLane, at: float) -> None:
        if lane.alarm == at:
            lane.alarm = math.inf
            self.judge(lane)


def _parcel(item: Item) -> Parcel:
    assert item.parcel is not None
    return item.parcel
