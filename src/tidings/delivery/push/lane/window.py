"""A part of a lane that is taken in order: up to where it was taken, what of it is open, and what of it was read ahead."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from itertools import count

from tidings.delivery.push.lane.entries import WAITING, Item, Parcel
from tidings.lanes.port import BEGIN, Mark
from tidings.log.position import last_place

ENDLESS = 1 << 62

_turns = count()


class Window:
    """The entries after `cursor` and up to `last` are not taken; those of before that are open are in `open`, in order.

    `place` and `last_place` are the positions of the two. `ready` are entries that were read and not taken.
    `more`: there may be some that were not read. `reading`: somebody reads them. `loading`: somebody reads open ones that are due.

    The heap is an index of open items that may go, by when they are due. Items that moved on are passed over.
    """

    __slots__ = ("_heap", "cursor", "last", "last_place", "loading", "more", "open", "place", "reading", "ready")

    def __init__(self, taken: Mark = BEGIN, last: Mark | None = None) -> None:
        self.cursor, self.place = taken
        self.last, self.last_place = last or Mark(ENDLESS, last_place(self.place.partition))
        self.open: dict[int, Item] = {}
        self.ready: deque[Parcel] = deque()
        self.more = True
        self.reading = False
        self.loading = False
        self._heap: list[tuple[float, int, int, Item]] = []

    @property
    def exhausted(self) -> bool:
        """Everything of it was taken."""
        return self.cursor >= self.last

    @property
    def idle(self) -> bool:
        """Everything that is known of it is final."""
        return not (self.open or self.ready or (self.more and not self.exhausted))

    @property
    def read_to(self) -> Mark:
        """Up to where it was read."""
        if self.ready:
            newest = self.ready[-1]
            return Mark(newest.number, newest.position)
        return Mark(self.cursor, self.place)

    def may_go(self, item: Item) -> None:
        """The item may be sent when it is due."""
        heapq.heappush(self._heap, (item.when, item.number, next(_turns), item))

    def top(self) -> Item | None:
        """The item that is due first of those that may go."""
        heap = self._heap
        while heap:
            when, _, _, item = heap[0]
            if item.stage is WAITING and item.when == when:
                return item
            heapq.heappop(heap)
        return None

    def due_without_parcel(self, at: float, limit: int) -> Sequence[Item]:
        """The first items that are due at a monotonic second and are to be read."""
        found: list[tuple[float, int, int, Item]] = []
        while len(found) < limit and (item := self.top()) is not None and item.when <= at and item.parcel is None:
            found.append(heapq.heappop(self._heap))
        for one in found:
            heapq.heappush(self._heap, one)
        # The same item may stand in the heap twice.
        return list(dict.fromkeys(item for _, _, _, item in found))

    def forget_index(self) -> None:
        self._heap.clear()

    def forget_read(self) -> None:
        """What was read ahead is read again, under the policy of then."""
        self.ready.clear()
        self.more = True
        for item in self.open.values():
            if item.stage is WAITING:
                item.parcel = None
