"""A lane with its owner: its state, the policy in force, and what the engine knows of its attempts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from enum import IntEnum
from typing import NamedTuple, Protocol

from tidings.clock import SECOND, Instant
from tidings.delivery.push.egress.sender import SendTarget
from tidings.delivery.push.lane.breaker import Status, bounded, shown
from tidings.delivery.push.lane.choice import Allowed
from tidings.delivery.push.lane.entries import Item, Parcel
from tidings.delivery.push.lane.saved import encode, encode_item
from tidings.delivery.push.lane.state import LaneState
from tidings.delivery.push.policy.pace import Pace
from tidings.delivery.push.policy.policy import Policy
from tidings.delivery.push.reader import LaneDetail
from tidings.delivery.push.store import Firsts, LaneTally, SavedLane
from tidings.log.position import LaneNumber

FIRST_WINDOW = 16.0


class EndpointStanding(IntEnum):
    """What is known of how a lane's endpoint answers; see `schedule`."""

    QUICK = 0
    NEW = 1
    SLOW = 2


class Job(NamedTuple):
    """One attempt to be made; several items where they go out as a batch. What comes of it is judged by its own policy."""

    lane: PushLane
    items: Sequence[Item]
    parcel: Parcel
    policy: Policy


class StreamListener(Protocol):
    """Whoever holds a lane's stream open."""

    def wake(self) -> None:
        """There may be something to send. Called often; cheap."""

    def leave(self) -> None:
        """The lane is streamed no more."""


class PushLane:
    """A lane with an owner. Only the engine's event loop touches it.

    `pushing` says whether new attempts may begin; `window` is how many may be on their way at once, for now. `alarm` is when the
    lane is looked at again although nothing happened (monotonic seconds). `epoch` changes with everything that makes what is being
    read useless. `waited_turn` and `waited_held`: whether one of those that waited behind a breaker is next, and whether they wait
    still. `delayed`: see `Allowed`. `barred` says why the subscription may be given nothing. `listener` holds the stream of a lane
    that is streamed. `shown` is the cursor up to which the save says that something is on its way. `neglected` is since when
    nobody has held what is due (monotonic seconds).
    """

    __slots__ = (
        *(
            "alarm",
            "barred",
            "counted",
            "delayed",
            "deleted",
            "epoch",
            "firsts",
            "inflight",
            "listener",
            "name",
            "neglected",
            "number",
        ),
        *("pace", "policy", "pushing", "queued", "shown", "standing", "state", "tally", "target"),
        *("waited_held", "waited_turn", "window"),
    )

    def __init__(self, number: LaneNumber, name: str, state: LaneState, tally: LaneTally) -> None:
        self.number = number
        self.name = name
        self.state = state
        self.tally = tally
        self.policy: Policy | None = None
        self.target: SendTarget | None = None
        self.deleted = False
        self.barred = ""
        self.pushing = False
        self.firsts = Firsts()
        self.delayed = (0, 0.0)
        self.epoch = 0
        self.inflight = 0
        self.window = 0.0
        self.standing = EndpointStanding.NEW
        self.queued = False
        self.waited_turn = False
        self.waited_held = False
        self.pace = Pace()
        self.pace.remember(state.paced)
        self.alarm = math.inf
        self.listener: StreamListener | None = None
        self.counted = 0
        self.shown = state.live.cursor
        self.neglected = math.inf

    def adopt(self, policy: Policy | None, now: Instant = Instant(0)) -> bool:
        """Deliver by this policy from the next attempt on; None: begin nothing. Whether the lane waits for a save now."""
        first, self.policy, self.target = self.policy is None, policy, None
        waits = False
        if policy is not None:
            self.window = min(FIRST_WINDOW, policy.inflight)
            self.pace.adopt(policy.pace)
            arrange = self.state.arrange if first and not self.inflight else self.state.rearrange
            waits = bool(arrange(policy.ordering, batched=policy.batch is not None))
        self.forget_read()
        self.judge(now)
        return waits

    def suspend(self, suspended: bool, now: Instant) -> None:
        """Begin no attempts, or begin them again; what was being retried then has its whole time again."""
        if self.state.suspended and not suspended:
            self.state.restart_lifetimes(now)
        self.state.suspended = suspended
        self.judge(now)

    def bar(self, why: str, now: Instant) -> bool:
        """The subscription may be given nothing, for this reason, or ("") it may again. False: it was so before."""
        if why == self.barred:
            return False
        if not why:
            self.state.restart_lifetimes(now)
        self.barred = why
        self.judge(now)
        return True

    def delete(self) -> None:
        """Begin no attempts ever again; what is on its way finishes."""
        self.deleted = True
        self.judge(Instant(0))
        self.forget_read()

    def judge(self, now: Instant) -> float:
        """Update whether the lane may send. Returns seconds until the next check (0: none)."""
        state, policy = self.state, self.policy
        if policy is not None:
            # No endpoint can have asked for a longer pause: the machine's clock was set back.
            state.paused_until = min(state.paused_until, Instant(now + round(policy.retry.asked_longest * SECOND)))
            if policy.breaker is not None:
                state.breaker = bounded(state.breaker, now, policy.breaker)
        postponed = state.breaker.postponed_until
        self.waited_held = len(state.windows) > 1 and postponed > now
        until = state.paused_until if self.waited_held else max(state.paused_until, postponed)
        stopped = self.deleted or bool(self.barred) or state.suspended or bool(state.disabled) or not state.breaker.sends
        self.pushing = policy is not None and not policy.streamed and not stopped and until <= now
        return max(0, state.paused_until - now, postponed - now) / SECOND

    @property
    def streaming(self) -> bool:
        """Whether a stream may send."""
        stopped = self.deleted or bool(self.barred) or self.state.suspended or bool(self.state.disabled)
        return self.policy is not None and self.policy.streamed and not stopped

    def allowed(self, now: Instant, at: float, take: bool) -> Allowed:
        """What the lane may do now; `take`: it may open items."""
        policy, state = self.policy, self.state
        assert policy is not None
        if len(state.windows) == 1:
            if not policy.sending_delay:
                return Allowed(now, at, take, in_order=policy.streamed)
            delayed = self._delayed(now, at, policy.sending_delay)
            return Allowed(now, at, take, delay=policy.sending_delay, delayed=delayed, in_order=policy.streamed)
        held = math.inf if self.waited_held else at + self.pace.back_wait(at)
        in_turn = self.waited_turn if state.breaker.status is Status.REPUBLISHING and not policy.streamed else None
        delayed = self._delayed(now, at, policy.sending_delay)
        return Allowed(now, at, take, held, in_turn, policy.sending_delay, delayed, policy.streamed)

    def _delayed(self, now: Instant, at: float, delay: float) -> tuple[int, float]:
        """Entries that were published later than now: the clock was set back, so they wait from when they are seen."""
        ready = self.state.windows[-1].ready
        if delay and ready and ready[0].published > now and ready[0].number > self.delayed[0]:
            self.delayed = ready[-1].number, at + delay
        return self.delayed

    def forget_read(self) -> None:
        """Drop what was read, and what is being read: it is read again, under the policy and cursor of then."""
        self.epoch += 1
        self.state.forget_read()

    @property
    def ordered(self) -> bool:
        """Whether an outcome has to be durable before the next entry goes out."""
        return self.state.ordered or self.state.batched

    def saved(self) -> SavedLane:
        """The lane as it is saved, with what changed since it was last saved."""
        state = self.state
        state.paced = self.pace.last_minute
        changed, removed = state.changes()
        return SavedLane(
            lane=self.number,
            state=self._word(),
            body=encode(state),
            low_water=state.low_water,
            open_items=state.size,
            next_due=state.next_due(),
            tally=copy(self.tally),
            detail=self._detail(),
            items=[(item.number, encode_item(item)) for item in changed],
            removed=removed,
        )

    def _detail(self) -> LaneDetail:
        state, rate = self.state, self.pace.speed.rate
        return LaneDetail(
            disabled=state.disabled,
            paused_until=state.paused_until or None,
            failing_since=state.failing_since or None,
            breaker=shown(state.breaker) if state.breaker.opened else None,
            mode=self.pace.speed.mode.value,
            rate=None if math.isinf(rate) else rate,
            redelivering=len(state.again.open) + state.letters,
        )

    def _word(self) -> str:
        """The state in one word, the one that keeps it from sending first."""
        if self.deleted:
            return "deleted"
        if self.state.suspended:
            return "suspended"
        if self.state.disabled:
            return "disabled"
        return "active" if self.state.breaker.status is Status.CLOSED else self.state.breaker.status.value
