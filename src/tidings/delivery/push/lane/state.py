"""The state of one lane: where each of its entries is. No I/O, no clock.

An entry is in exactly one place:

    not taken ──take──▶ WAITING ──begin──▶ SENDING ──close──▶ CLOSING ──saved──▶ final     in ordered lanes and batches
   (beyond the cursor      ▲  ▲               │ │
    of its window)         │  └────retry──────┘ └────close──────────────────────▶ final     in all others
                           │
      final ───redeliver───┘              a rewind:  WAITING ──▶ not taken, or final where it was skipped
                                                     SENDING ──▶ ABANDONED ──close, retry──▶ CLOSING or final, as above

WAITING and SENDING items are in the `open` table of their window, or in that of `again` for redeliveries, which never move the
low-water mark. An index says which WAITING ones may go: the first of its line where the lane is ordered (`strict` has one line,
`key` one for each key), all of them where it is not, the lane's `batch` where events go out together.

CLOSING items are final, and that is not durable: they stay first of their line. ABANDONED ones are on their way although their
entry was taken away: what comes of them does not count, but an ordered lane waits for it. `barriers` are saves that an ordered lane
waits for because its order changed.

Usually there is one window. When a breaker lets go what waited, that is a window of its own, before the live one, so that new
entries need not wait for the old ones; each time that it opens meanwhile, one more. A window whose entries are all final is gone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from tidings.clock import SECOND, Instant
from tidings.delivery.push.lane.breaker import CLOSED, renumbered
from tidings.delivery.push.lane.entries import ABANDONED, CLOSING, DUE, GONE, SENDING, WAITING, Item, Parcel
from tidings.delivery.push.lane.window import Window
from tidings.lanes.port import BEGIN, Mark
from tidings.log.position import Position, place_before
from tidings.registry.delivery_options import Ordering

OPEN_LIMIT = 10_000
ONE_LINE = 0


class LaneState:
    """One lane's state. One owner, one thread. Every method leaves a state that may be saved.

    `disabled` is why nothing is sent until somebody enables it, `paused_until` until when the endpoint asked for nothing,
    `failing_since` when the failures began that no success has ended yet (0: none), `paced` when the last attempts were, where
    their number in a minute is bounded. `letters` is how many dead letters are to be sent again and wait for room on the
    redelivery list. `filling` is how often the lane was filled anew, as far as this state knows. `fresh` are open items that are
    saved with the lane, `changed` and `removed` what is to be saved of the others.
    """

    __slots__ = (
        *("_by_position", "_lines", "abandoned", "again", "barriers", "batch", "batched", "breaker", "changed", "closing"),
        *(
            "disabled",
            "failing_since",
            "filling",
            "fresh",
            "letters",
            "limit",
            "ordering",
            "paced",
            "paused_until",
            "removed",
            "suspended",
            "windows",
        ),
    )

    def __init__(self, taken: Mark = BEGIN, limit: int = OPEN_LIMIT) -> None:
        self.limit = limit
        self.windows: list[Window] = [Window(taken)]
        self.again = Window(last=BEGIN)
        self.ordering = Ordering.PARALLEL
        self.batched = False
        self.batch: list[Item] = []
        self.closing: set[Item] = set()
        self.abandoned: set[Item] = set()
        self.barriers = 0
        self.suspended = False
        self.disabled = ""
        self.paused_until = Instant(0)
        self.failing_since = Instant(0)
        self.breaker = CLOSED
        self.paced: Sequence[tuple[float, int]] = ()
        self.letters = 0
        self.filling = 0
        self.fresh: dict[int, Item] = {}
        self.changed: dict[int, Item] = {}
        self.removed: set[int] = set()
        self._lines: dict[int, deque[Item]] = {}
        self._by_position: dict[Position, Item] | None = None

    # ---- what it says

    @property
    def live(self) -> Window:
        """The window that new entries come to."""
        return self.windows[-1]

    @property
    def waited(self) -> Sequence[Window]:
        """The windows of what waited behind a breaker, oldest first."""
        return self.windows[:-1]

    @property
    def ordered(self) -> bool:
        return self.ordering is not Ordering.PARALLEL

    @property
    def settled(self) -> bool:
        """Whether the order is free of what was before it changed."""
        return not self.barriers and not self.abandoned

    @property
    def low_water(self) -> Mark:
        """Everything of the lane at or below is final, redeliveries aside."""
        for window in self.windows:
            if window.open:
                first = next(iter(window.open.values()))
                return Mark(first.number - 1, place_before(first.position))
            if not window.exhausted:
                break
        return Mark(window.cursor, window.place)

    @property
    def size(self) -> int:
        """How many items are open, redeliveries included."""
        if len(self.windows) == 1:
            return len(self.again.open) + len(self.windows[0].open)
        return len(self.again.open) + sum(len(window.open) for window in self.windows)

    @property
    def room(self) -> int:
        """How many more items may be opened."""
        return self.limit - self.size

    @property
    def idle(self) -> bool:
        """Everything that is known of the lane is final, redeliveries aside."""
        return len(self.windows) == 1 and self.live.idle

    def items(self) -> Iterator[Item]:
        for window in (*self.windows, self.again):
            yield from window.open.values()

    def item_at(self, number: int) -> Item | None:
        """The open item of this entry, a redelivery included."""
        return self._window_of(number).open.get(number) or self.again.open.get(number)

    def item_of(self, position: Position) -> Item | None:
        """The same by position. For readers: the state must not change any more."""
        if self._by_position is None:
            self._by_position = {item.position: item for item in self.items()}
        return self._by_position.get(position)

    def waits(self, number: int) -> bool:
        """Whether an entry waited behind a breaker and was not taken."""
        return any(window.cursor < number <= window.last for window in self.waited)

    def in_waited(self, item: Item) -> bool:
        """Whether an open item is one of those that waited behind a breaker."""
        return not item.again and self._window_of(item.number) is not self.live

    def holds(self, item: Item) -> bool:
        """Whether this very item is still open: a rewind or a skip may have taken it away while it was being sent."""
        return item.stage <= SENDING

    def first_of_line(self, item: Item) -> bool:
        """Whether nothing of its line is before the item."""
        if self.ordering is Ordering.PARALLEL or item.again:
            return True
        line = self._lines.get(self._line_of(item))
        return not line or line[0] is item

    def overdue(self, at: float) -> Iterator[Item]:
        """The items that wait although they are due, whatever the index says."""
        # A lane of batches gathers what is open anew each time: it has no index.
        return (item for item in self.items() if item.stage is WAITING and item.when <= at and not self.batched)

    def next_due(self) -> Instant | None:
        """When the first of those that wait for another try is due."""
        tops = (window.top() for window in (*self.windows, self.again))
        first = min((top for top in (*tops, *self.batch[:1]) if top is not None and top.due), key=_when, default=None)
        return None if first is None else first.due

    # ---- the moves

    def take(self, window: Window, parcel: Parcel, now: Instant, at: float) -> Item:
        """Open the next entry of a window, at the end of its line; the caller has seen that there is room."""
        item = Item(parcel.number, parcel.position, since=now, key=parcel.key, when=at, parcel=parcel)
        window.open[item.number] = self.fresh[item.number] = item
        window.cursor, window.place = parcel.number, parcel.position
        if self.ordering is not Ordering.PARALLEL:
            self._lines.setdefault(self._line_of(item), deque()).append(item)
        return item

    def begin(self, items: Iterable[Item]) -> None:
        """An attempt begins."""
        for item in items:
            item.stage = SENDING

    def seal(self, items: Sequence[Item]) -> None:
        """These go out together, until they are final."""
        if self.batch != items:
            self.batch = list(items)
            for item in items:
                item.batch = items[0].number
                self._note(item)

    def retry(self, item: Item, due: Instant, when: float, cause: str) -> bool:
        """The item is tried again then. False: it was taken away meanwhile."""
        if not self.holds(item):
            self.ended(item)
            return False
        item.stage, item.parcel = WAITING, None
        item.due, item.when, item.cause = due, when, cause
        self._keep(item)
        self._line_up(item)
        return True

    def put_back(self, item: Item) -> None:
        """The item was not sent after all. It is read again: its parcel was laid out for who does not get it now."""
        if item.stage is SENDING:
            item.stage, item.parcel = WAITING, None
            self._line_up(item)
        elif item.stage is ABANDONED:
            item.stage = GONE
            self.abandoned.discard(item)

    def close(self, item: Item) -> bool:
        """The item is final. False: it was taken away meanwhile, and what came of it counts no more."""
        if item.stage > SENDING:
            self.ended(item)
            return False
        del (self._table(item) if item.again or len(self.windows) > 1 else self.windows[0].open)[item.number]
        if item.kept:
            self._forget(item)
        else:
            del self.fresh[item.number]
        if item.batch and item in self.batch:
            self.batch.remove(item)
        if self.batched or (self.ordering is not Ordering.PARALLEL and not item.again):
            item.stage = CLOSING
            self.closing.add(item)
        else:
            item.stage = GONE
        if len(self.windows) > 1:
            self._join()
        return True

    def ended(self, item: Item) -> None:
        """The attempt of an abandoned item ended. An ordered lane waits until that is saved, too."""
        if item.stage is ABANDONED:
            if self.ordered or self.batched:
                item.stage = CLOSING
            else:
                item.stage = GONE
                self.abandoned.discard(item)

    def saved(self, items: Iterable[Item | None]) -> None:
        """What was closed is durable: lines move on. None stands for a barrier."""
        for item in items:
            if item is None:
                self.barriers -= 1
            elif item.stage is CLOSING:
                item.stage = GONE
                self.closing.discard(item)
                self.abandoned.discard(item)
                self._leave(item)

    def redeliver(self, marks: Iterable[Mark], now: Instant) -> None:
        """Send entries again. What is yet to be taken is sent anyway, and what is open is due now."""
        for mark in marks:
            if mark.number > self._window_of(mark.number).cursor:
                continue
            item = self.item_at(mark.number)
            if item is None:
                item = Item(mark.number, mark.position, since=now, again=True)
                self.again.open[mark.number] = item
            if item.stage is WAITING:
                item.due, item.when = DUE, 0.0
                self._keep(item)
                self._line_up(item)

    def rewind(self, to: Mark) -> bool:
        """Move the cursor: the next live entry is the first one after `to`. Whether the lane waits for a save now.

        Back: what is open at or below `to` stays open, what is above comes again. Forward: what is open is skipped too.
        """
        skipped = to.number >= self.windows[0].cursor
        opened = {item.number: item for window in self.windows for item in window.open.values()}
        live = Window(to)
        for item in opened.values():
            if skipped or item.number > to.number:
                self._abandon(item)
            else:
                live.open[item.number] = item
        if not skipped:
            for item in [item for number, item in self.again.open.items() if number > to.number]:
                del self.again.open[item.number]
                self._abandon(item)
        self.batch = [item for item in self.batch if self.holds(item)]
        self.windows = [live]
        return self.rearrange(self.ordering, batched=self.batched)

    def split(self, until: Mark) -> None:
        """What is open, and what follows up to `until`, waited; new entries are taken after `until` from now on."""
        live = self.live
        live.last, live.last_place = until if until.number > live.cursor else (live.cursor, live.place)
        self.windows.append(Window(Mark(live.last, live.last_place)))
        self._join()

    def pass_over(self, window: Window, to: int, place: Position | None = None) -> int:
        """The entries of a window up to `to` are gone; how many that were."""
        missed = max(0, to - window.cursor)
        window.cursor += missed
        window.place = place if place is not None and missed else window.place
        self._join()
        return missed

    def renumber(self, by: int) -> None:
        """The lane was made anew and gives its numbers again: all that is known is `by` further down."""
        for window in (*self.windows, self.again):
            window.open = {number - by: item for number, item in window.open.items()}
            window.cursor -= by
            window.last -= by if window.last < self.live.last else 0
            window.forget_read()
        self.breaker = renumbered(self.breaker, by)
        for item in self.items():
            if item.kept:
                self.removed.add(item.number)
            item.number -= by
            item.batch -= by if item.batch else 0
        self.fresh = {item.number: item for item in self.items() if not item.kept}
        self.changed = {item.number: item for item in self.items() if item.kept}
        self.arrange(self.ordering, batched=self.batched)

    def arrange(self, ordering: Ordering, *, batched: bool) -> None:
        """The order to keep, or what is open, changed: everything open stands in line anew."""
        self.ordering, self.batched = (Ordering.PARALLEL if batched else ordering), batched
        if not batched:
            for item in self.batch:
                item.batch = 0
                self._note(item)
            self.batch = []
        self._lines = {}
        for window in (*self.windows, self.again):
            window.forget_index()
            for item in window.open.values():
                if self.ordered and not item.again:
                    self._lines.setdefault(self._line_of(item), deque()).append(item)
                if item.stage is WAITING:
                    self._line_up(item)

    def rearrange(self, ordering: Ordering, *, batched: bool) -> bool:
        """The same while the lane is being sent. Whether it waits for a save now: what is final must be durable before the next
        entry goes out, and who closed before the order changed stands in no line.
        """
        self.arrange(ordering, batched=batched)
        waits = self.ordered or self.batched
        self.barriers += waits
        return waits

    def restore(self, items: Iterable[Item]) -> None:
        """Open items as they were saved; the windows are there already."""
        for item in sorted(items, key=lambda item: item.number):
            self._table(item)[item.number] = item
            if not item.kept:
                self.fresh[item.number] = item
            if item.batch:
                self.batch.append(item)

    def arm(self, now: Instant, at: float, longest: float) -> None:
        """After a restart: when each item is due, in monotonic seconds, bounded because the clock may have been set back."""
        for item in self.items():
            left = min(max(0.0, (item.due - now) / SECOND), longest) if item.due else 0.0
            item.when = at + left if item.due else 0.0

    def due_at_once(self, now: Instant) -> None:
        """Nothing waits for its retry any longer."""
        for item in self.items():
            item.due, item.when = min(item.due, now), 0.0
        self.arrange(self.ordering, batched=self.batched)

    def restart_lifetimes(self, now: Instant) -> None:
        """What is being retried has its whole time again."""
        for item in self.items():
            item.since = now
            self._note(item)

    def heal(self) -> None:
        """Nobody is on the way and nobody is saving: nothing may stand for that, and everything open stands in line anew."""
        self.barriers = 0
        self.closing.clear()
        self.abandoned.clear()
        self.arrange(self.ordering, batched=self.batched)

    def forget_read(self) -> None:
        """Drop what was read, to read it again under the policy of now."""
        for window in (*self.windows, self.again):
            window.forget_read()

    def changes(self) -> tuple[Sequence[Item], Sequence[int]]:
        """The items that are to be saved, and the numbers of those that are to be removed, since the last call."""
        changed, removed = list(self.changed.values()), [number for number in self.removed if number not in self.changed]
        self.changed, self.removed = {}, set()
        return changed, removed

    # ---- tables, lines and windows

    def _window_of(self, number: int) -> Window:
        if len(self.windows) > 1:
            for window in self.windows:
                if number <= window.last:
                    return window
        return self.windows[-1]

    def _table(self, item: Item) -> dict[int, Item]:
        return self.again.open if item.again else self._window_of(item.number).open

    def _line_of(self, item: Item) -> int:
        return item.key if self.ordering is Ordering.KEY else ONE_LINE

    def _line_up(self, item: Item) -> None:
        """Index a waiting item, if it may go when it is due."""
        if not self.batched and self.first_of_line(item):
            (self.again if item.again else self._window_of(item.number)).may_go(item)

    def _leave(self, item: Item) -> None:
        """The next of the item's line may go. One that closed before the order changed is in no line."""
        key = self._line_of(item)
        line = self._lines.get(key)
        if not line or item not in line:
            return
        line.remove(item)
        if not line:
            del self._lines[key]
        elif line[0].stage is WAITING:
            self._line_up(line[0])

    def _join(self) -> None:
        """Windows of which everything is final are gone."""
        self.windows = [*(window for window in self.waited if window.open or not window.exhausted), self.live]

    def _abandon(self, item: Item) -> None:
        """The item's entry was taken away from it."""
        self._forget(item)
        if item.stage is SENDING:
            item.stage = ABANDONED
            self.abandoned.add(item)
        else:
            item.stage = GONE

    # ---- what is to be saved

    def _keep(self, item: Item) -> None:
        """The item failed, or is sent again: it has a row of its own from now on."""
        if not item.kept:
            item.kept = True
            self.fresh.pop(item.number, None)
        self.changed[item.number] = item

    def _note(self, item: Item) -> None:
        if item.kept:
            self.changed[item.number] = item

    def _forget(self, item: Item) -> None:
        if item.kept:
            self.changed.pop(item.number, None)
            self.removed.add(item.number)
        else:
            self.fresh.pop(item.number, None)


def _when(item: Item) -> float:
    return item.when
