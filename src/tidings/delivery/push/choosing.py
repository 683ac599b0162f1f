"""What a lane sends next: what is due first, then live entries, in order, within the rate, singly or as a batch."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from tidings.clock import SECOND, Clock
from tidings.delivery.push.batching import Batch
from tidings.delivery.push.lane import Item
from tidings.delivery.push.ledger import Ledger
from tidings.delivery.push.policy import Policy
from tidings.delivery.push.pushing import EXPIRED, Job, Parcel, PushLane
from tidings.delivery.push.reading import Reading
from tidings.log.position import Offset

OPEN_IN_ALL = 200_000
OPEN_ALWAYS = 10
"""When more items than OPEN_IN_ALL are open, a lane with OPEN_ALWAYS or more takes no live entries."""


Pick: TypeAlias = tuple[Item, Parcel]
"""One entry that may go now. A plain tuple: one is made for every delivery."""


class Choosing:
    """Chooses. `aside` is told of entries that cannot be sent, `alarm` when a lane is to be looked at again."""

    def __init__(self, reading: Reading, ledger: Ledger, clock: Clock) -> None:
        self._reading = reading
        self._ledger = ledger
        self._clock = clock
        self.aside: Callable[[PushLane, Item, str], None] = lambda lane, item, fault: None
        self.alarm: Callable[[PushLane, float], None] = lambda lane, seconds: None
        self.missed: Callable[[PushLane, int, Offset | None, Offset | None], None] = lambda lane, count, end, after: None

    def next_of(self, lane: PushLane) -> Job | None:
        """The next attempt; None: there is nothing now, and the lane is offered again when there is."""
        policy = lane.policy
        if policy is None:
            return None
        wait = lane.pace.wait(self._clock.monotonic()) if lane.pace.limited or policy.pace.adaptive else 0.0
        if wait > 0:
            self.alarm(lane, wait)
            return None
        if policy.batch is not None:
            return self._batch(lane, policy)
        pick = self._pick(lane, policy)
        return None if pick is None else Job(lane, (pick[0],), pick[1])

    def _pick(self, lane: PushLane, policy: Policy) -> Pick | None:
        """The next entry that may go; it is open then."""
        now = self._clock.now()
        held_back = False
        while True:
            if lane.loaded and not held_back:
                item, parcel = lane.loaded.popleft()
                if item.sending or item.due > now or not lane.state.holds(item) or not lane.gate.may_go(item):
                    continue
                if lane.back_held and _waited(lane, item):
                    # The lane makes them due again when their time has come.
                    continue
                held_back = lane.state.back is not None and self._too_fast(lane, item)
                if held_back:
                    lane.loaded.appendleft((item, parcel))
                    continue
            elif lane.due and not held_back:
                self._reading.load(lane)
                continue
            elif not self._may_take(lane, policy):
                return None
            elif lane.state.back is not None and not lane.back_held and (waited := self._back(lane)) is not None:
                item, parcel = waited
            elif lane.ready:
                if policy.sending_delay and self._delayed(lane, policy.sending_delay):
                    return None
                parcel = lane.ready.popleft()
                item = lane.state.take(parcel.offset, now, parcel.key)
                if not lane.gate.enter(item):
                    lane.held[item.offset] = parcel
                    continue
            elif lane.more and self._reading.fill(lane):
                continue
            else:
                return None
            if not parcel.fault and parcel.until > now:
                return item, parcel
            self.aside(lane, item, parcel.fault or EXPIRED)

    def _too_fast(self, lane: PushLane, item: Item) -> bool:
        """Whether an open one of those that waited has to wait for its rate; if not, it is counted."""
        if not _waited(lane, item):
            return False
        wait = lane.pace.back_wait(self._clock.monotonic())
        if wait > 0:
            self.alarm(lane, wait)
            return True
        lane.pace.back_sent(self._clock.monotonic())
        return False

    def _back(self, lane: PushLane) -> Pick | None:
        """The next entry of those that waited, in turn with new ones and within its own rate."""
        lane.back_turn = not lane.back_turn
        if not lane.back_turn and (lane.ready or (lane.more and self._reading.fill(lane))):
            return None
        wait = lane.pace.back_wait(self._clock.monotonic())
        if wait > 0:
            self.alarm(lane, wait)
            return None
        if not lane.back_ready and not self._reading.fill_back(lane):
            back = lane.state.back
            after, end = (None, None) if back is None else (back.cursor, Offset(back.until + 1))
            missed = lane.state.back_read()
            if missed:
                self.missed(lane, missed, end, after)
            return None
        parcel = lane.back_ready.popleft()
        lane.pace.back_sent(self._clock.monotonic())
        return lane.state.take_back(parcel.offset, self._clock.now(), parcel.key), parcel

    def _may_take(self, lane: PushLane, policy: Policy) -> bool:
        if len(lane.state.open) >= policy.open_items:
            return False
        size = lane.state.size
        return size < lane.state.limit and (size < OPEN_ALWAYS or self._ledger.open_items < OPEN_IN_ALL)

    def _delayed(self, lane: PushLane, delay: float) -> bool:
        """Whether the next live entry is too young to be sent."""
        wait = (lane.ready[0].published - self._clock.now()) / SECOND + delay
        if wait > delay:
            wait = self._delayed_by_clock(lane, delay)
        if wait <= 0:
            return False
        self.alarm(lane, wait)
        return True

    def _delayed_by_clock(self, lane: PushLane, delay: float) -> float:
        """The same for entries that were published later than now: the clock was set back, so they wait from when they are seen."""
        now = self._clock.monotonic()
        if lane.ready[0].offset > lane.delayed[0]:
            lane.delayed = lane.ready[-1].offset, now + delay
        return min(delay, lane.delayed[1] - now)

    # ---- batches

    def _batch(self, lane: PushLane, policy: Policy) -> Job | None:
        """The lane's batch, if it is to go out now; one at a time."""
        assert policy.batch is not None
        if lane.batch is not None and lane.batch.sealed:
            return self._sealed(lane, lane.batch)
        batch = lane.batch = lane.batch or Batch(policy.batch)
        while not batch.full and (pick := self._pick(lane, policy)) is not None:
            item, parcel = pick
            if batch.fits(parcel):
                item.sending = True
                batch.add(item, parcel, self._clock.monotonic())
            else:
                lane.loaded.appendleft(pick)
                return self._go(lane, batch, policy)
        if not batch.items:
            return None
        wait = 0.0 if batch.full else batch.wait(self._clock.now(), self._clock.monotonic())
        if wait > 0:
            self.alarm(lane, wait)
            return None
        return self._go(lane, batch, policy)

    def _go(self, lane: PushLane, batch: Batch, policy: Policy) -> Job:
        return Job(lane, batch.items, batch.seal(dict(policy.headers)))

    def _sealed(self, lane: PushLane, batch: Batch) -> Job | None:
        """The same batch once more, when its time has come. One that lost an event to a rewind or a skip is made anew."""
        if batch.leaving or batch.items[0].sending or batch.items[0].due > self._clock.now():
            return None
        held = [item for item in batch.items if lane.state.holds(item)]
        members = {id(item) for item in batch.items}
        lane.due = deque(item for item in lane.due if id(item) not in members)
        if len(held) < len(batch.items) or batch.whole is None:
            lane.batch = None
            lane.due.extendleft(reversed(held))
            return self.next_of(lane)
        return Job(lane, batch.items, batch.whole)


def _waited(lane: PushLane, item: Item) -> bool:
    """Whether the item is one of those that waited behind the breaker."""
    back = lane.state.back
    return back is not None and not item.again and item.offset <= back.until
