"""What a stream sends next: oldest first, one after the other. After a resumption, first what it asked for once more."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple, Protocol

from tidings.clock import Clock, Instant
from tidings.delivery.push.lane import Item
from tidings.delivery.push.pushing import EXPIRED, Parcel, PushLane
from tidings.delivery.push.reading import Reading
from tidings.log.position import Offset


class Aside(Protocol):
    """Where entries go that cannot be sent, and what retention took."""

    def set_aside(self, lane: PushLane, item: Item, fault: str) -> None: ...
    def missed(self, lane: PushLane, count: int, end: Offset | None) -> None: ...


class Pick(NamedTuple):
    """An entry to send. `item` None: it was final already, and is sent once more only because this stream asked."""

    item: Item | None
    parcel: Parcel


class Picking:
    """Picks entries of one lane for one stream. `after`: begin with everything after this offset."""

    def __init__(self, lane: PushLane, reading: Reading, aside: Aside, clock: Clock, after: Offset | None = None) -> None:
        self._lane = lane
        self._reading = reading
        self._aside = aside
        self._clock = clock
        self._again: deque[Parcel] = deque()
        # What is beyond the cursor comes by itself.
        self._replayed = after
        self._until = lane.state.cursor

    def next(self) -> Pick | None:
        """The next entry; its item counts as being sent. None: there is nothing now. Raises LogUnavailable."""
        now = self._clock.now()
        while self._replayed is not None:
            pick = self._replay(now)
            if pick is not None:
                return pick
        while (found := self._found(now)) is not None:
            item, parcel = found
            if not parcel.fault and parcel.until > now:
                item.sending = True
                return Pick(item, parcel)
            self._aside.set_aside(self._lane, item, parcel.fault or EXPIRED)
        return None

    def _found(self, now: Instant) -> tuple[Item, Parcel] | None:
        """The next entry that is open, or is opened now: what was begun before, what waited behind a breaker, what is new."""
        lane = self._lane
        while True:
            if lane.loaded:
                item, parcel = lane.loaded.popleft()
                if not item.sending and lane.state.holds(item):
                    return item, parcel
            elif lane.due:
                self._reading.load(lane)
            elif lane.state.size >= lane.state.limit:
                return None
            elif lane.state.back is not None:
                if not lane.back_ready and not self._reading.fill_back(lane):
                    missed = lane.state.back_read()
                    if missed:
                        self._aside.missed(lane, missed, None)
                    # What is open of it is being sent; a lane that is to go on needs no other window.
                    if lane.state.back is not None:
                        return self._live(now)
                    continue
                parcel = lane.back_ready.popleft()
                return lane.state.take_back(parcel.offset, now, parcel.key), parcel
            else:
                return self._live(now)

    def _live(self, now: Instant) -> tuple[Item, Parcel] | None:
        lane = self._lane
        while not lane.ready:
            if not (lane.more and self._reading.fill(lane)):
                return None
        parcel = lane.ready.popleft()
        return lane.state.take(parcel.offset, now, parcel.key), parcel

    def _replay(self, now: Instant) -> Pick | None:
        """One of the entries that are asked for once more; what is open among them is sent as what it is."""
        assert self._replayed is not None
        if not self._again:
            self._again.extend(self._reading.between(self._lane, self._replayed, self._until))
            if not self._again:
                self._replayed = None
                return None
        parcel = self._again.popleft()
        self._replayed = parcel.offset
        item = self._lane.state.item_at(parcel.offset)
        if item is not None and item.sending:
            return None
        fault = parcel.fault or (EXPIRED if parcel.until <= now else "")
        if fault:
            if item is not None:
                self._aside.set_aside(self._lane, item, fault)
            return None
        if item is not None:
            item.sending = True
        return Pick(item, parcel)
