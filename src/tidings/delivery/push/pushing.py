"""One lane while it is being pushed: its state, and what of it is in memory and about to be sent."""

from __future__ import annotations

import math
from array import array
from collections import deque
from collections.abc import Sequence
from copy import copy
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from tidings.clock import SECOND, Instant
from tidings.delivery.push.breaker import Status, bounded, shown
from tidings.delivery.push.gate import Gate
from tidings.delivery.push.lane import Item, LaneState, encode
from tidings.delivery.push.pace import Pace
from tidings.delivery.push.policy import Policy
from tidings.delivery.push.port import LaneDetail
from tidings.delivery.push.retries import RetryPolicy
from tidings.delivery.push.sender import Target
from tidings.delivery.push.store import Firsts, LaneKey, SavedLane, Tally
from tidings.log.position import START, Offset
from tidings.registry.rules.retentions import NEVER
from tidings.registry.wishes import Ordering

if TYPE_CHECKING:
    from tidings.delivery.push.batching import Batch


class Parcel(msgspec.Struct, gc=False):
    """An entry ready to be sent. `fault`: it cannot be sent, and why (retention removed it, it cannot be read).

    `until` is when its retention ends: after that it is not sent, though it may still be there.
    """

    offset: Offset
    headers: dict[str, str]
    body: bytes
    fault: str = ""
    published: Instant = Instant(0)
    key: int = 0
    until: Instant = NEVER


class Standing(IntEnum):
    """What is known of how a lane's endpoint answers; see `schedule`."""

    QUICK = 0
    NEW = 1
    SLOW = 2


EXPIRED = "expired"
FIRST_WINDOW = 16.0


class Job(NamedTuple):
    """One attempt to be made; several items where they go out as a batch."""

    lane: PushLane
    items: Sequence[Item]
    parcel: Parcel


class Listener(Protocol):
    """Whoever holds a lane's stream open."""

    def wake(self) -> None:
        """There may be something to send. Called often; cheap."""

    def leave(self) -> None:
        """The lane is streamed no more."""


class PushLane:
    """A lane with an owner. Only the engine's event loop touches it.

    `ready` holds live entries that were read but not taken; `ahead` are offsets that follow them, not read yet, with the digests
    of their bodies where any is projected. All are forgotten when the cursor moves. `due` are open items whose time has come,
    `loaded` those of them that were read. `pushing` says whether new attempts may begin; `window` is how many may be on their
    way at once, for now. `held` are entries that were read and wait for their turn at the gate. `alarm` is when the lane is looked
    at again although nothing happened (monotonic seconds). `delayed`: entries up to there are not sent before then, since the
    clock says that they were published later than now. `barred` says why the subscription may be given nothing. `listener` holds
    the stream of a lane that is streamed. `told` is the cursor up to which it was told that something is on its way.
    """

    __slots__ = (
        *(
            "ahead",
            "ahead_digests",
            "barred",
            "counted",
            "delayed",
            "deleted",
            "due",
            "firsts",
            "inflight",
            "key",
            "loaded",
            "more",
            "name",
        ),
        *(
            "policy",
            "queued",
            "pushing",
            "read",
            "ready",
            "reported",
            "retry",
            "standing",
            "state",
            "tally",
            "target",
            "window",
        ),
        *("alarm", "back_held", "back_ready", "back_turn", "batch", "gate", "held", "listener", "pace", "told"),
    )

    def __init__(self, key: LaneKey, name: str, state: LaneState, tally: Tally) -> None:
        self.key = key
        self.name = name
        self.state = state
        self.tally = tally
        self.policy: Policy | None = None
        self.retry = RetryPolicy(tries=1, first=1.0, longest=1.0)
        self.target: Target | None = None
        self.deleted = False
        self.barred = ""
        self.pushing = False
        self.firsts = Firsts()
        self.due: deque[Item] = deque()
        self.loaded: deque[tuple[Item, Parcel]] = deque()
        self.ready: deque[Parcel] = deque()
        self.ahead = array("q")
        self.ahead_digests: bytes | None = None
        self.delayed = (START, 0.0)
        self.read = int(state.cursor)
        self.more = True
        self.inflight = 0
        self.window = 0.0
        self.standing = Standing.NEW
        self.queued = False
        self.gate = Gate()
        self.held: dict[Offset, Parcel] = {}
        self.back_ready: deque[Parcel] = deque()
        self.back_turn = False
        self.back_held = False
        self.pace = Pace()
        self.pace.remember(state.paced)
        self.alarm = math.inf
        self.batch: Batch | None = None
        self.listener: Listener | None = None
        self.counted = 0
        self.reported = tally.delivered
        self.told = state.cursor

    def adopt(self, policy: Policy | None, now: Instant = Instant(0)) -> bool:
        """Deliver by this policy from the next attempt on; None: begin nothing. False: it is the policy of before."""
        if policy == self.policy:
            return False
        self.policy = policy
        self.target = None
        if policy is not None:
            # Kept when pushing ends: what is on its way then still has an outcome to judge.
            self.retry = policy.retry
            self.window = min(FIRST_WINDOW, policy.inflight)
            self.pace.adopt(policy.pace)
            self.line_up(now)
        self.forget_read()
        self.judge(now)
        return True

    def suspend(self, suspended: bool, now: Instant) -> None:
        """Begin no attempts, or begin them again; what was being retried then has its whole time again."""
        if self.state.suspended and not suspended:
            self._begin_anew(now)
        self.state.suspended = suspended
        self.judge(now)

    def bar(self, why: str, now: Instant) -> bool:
        """The subscription may be given nothing, for this reason, or ("") it may again. False: it was so before."""
        if why == self.barred:
            return False
        if not why:
            self._begin_anew(now)
        self.barred = why
        self.judge(now)
        return True

    def _begin_anew(self, now: Instant) -> None:
        for item in self.state.items():
            item.since = now

    def delete(self) -> None:
        """Begin no attempts ever again; what is on its way finishes."""
        self.deleted = True
        self.judge(Instant(0))
        self.forget_read()
        self.due.clear()

    def judge(self, now: Instant) -> float:
        """Settle whether attempts may begin; the seconds after which that has to be asked again (0: never)."""
        state = self.state
        # No endpoint can have asked for a longer pause: the machine's clock was set back.
        state.paused_until = min(state.paused_until, Instant(now + round(self.retry.asked_longest * SECOND)))
        if self.policy is not None and self.policy.breaker is not None:
            state.breaker = bounded(state.breaker, now, self.policy.breaker)
        postponed = state.breaker.postponed_until
        self._hold_back(state.back is not None and postponed > now, now)
        until = state.paused_until if self.back_held else max(state.paused_until, postponed)
        stopped = self.deleted or bool(self.barred) or state.suspended or bool(state.disabled) or not state.breaker.sends
        self.pushing = self.policy is not None and not self.policy.streamed and not stopped and until <= now
        return max(0, state.paused_until - now, postponed - now) / SECOND

    def _hold_back(self, held: bool, now: Instant) -> None:
        """What waited behind the breaker is to wait still, while new entries go out (HOR-126, HOR-128); or it may go now."""
        if self.back_held and not held and self.state.back is not None:
            self.due.extend(item for item in self.state.back.open.values() if not item.sending and item.due <= now)
        self.back_held = held

    @property
    def streaming(self) -> bool:
        """Whether a stream may send."""
        stopped = self.deleted or bool(self.barred) or self.state.suspended or bool(self.state.disabled)
        return self.policy is not None and self.policy.streamed and not stopped

    def line_up(self, now: Instant) -> None:
        """The order to keep, or what is open, changed: everything open stands in line anew, and what is due is due."""
        if self.batch is not None and not self.batch.sealed:
            for item in self.batch.items:
                item.sending = False
        self.batch = None
        # Events of a batch go out together; order is kept between batches, of which there is one at a time.
        ordering = self.policy.ordering if self.policy is not None and self.policy.batch is None else Ordering.PARALLEL
        back = self.state.back.open.values() if self.state.back is not None else ()
        self.gate = Gate(ordering, [*back, *self.state.open.values()])
        self.held.clear()
        self.loaded.clear()
        self.due = deque(item for item in self.state.items() if not item.sending and item.due <= now)

    def forget_read(self) -> None:
        """Drop what was read ahead of the cursor; it is read again, under the policy and cursor of then."""
        self.ready.clear()
        self.back_ready.clear()
        self.due.extend(item for item, _ in self.loaded)
        self.loaded.clear()
        self.held.clear()
        self.ahead = array("q")
        self.ahead_digests = None
        self.read = int(self.state.cursor)
        self.more = True

    @property
    def idle(self) -> bool:
        """Everything that is known of the lane is final."""
        return not (self.more or self.ready or self.ahead or self.state.open or self.state.back)

    def saved(self) -> SavedLane:
        """The lane as it is saved."""
        state = self.state
        state.paced = self.pace.last_minute
        return SavedLane(
            key=self.key,
            state=self._word(),
            body=encode(state),
            low_water=state.low_water,
            open_items=state.size,
            next_due=self._next_due(),
            tally=copy(self.tally),
            detail=self._detail(),
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
            redelivering=len(state.again) + state.letters,
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

    def _next_due(self) -> Instant | None:
        return min((item.due for item in self.state.items() if item.due and not item.sending), default=None)
