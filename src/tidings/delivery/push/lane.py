"""The state of one lane: what is final, what is open, what is to be sent again. No I/O, no clock.

Everything taken from the lane is at or below `cursor`; what of it is not yet final is in `open`. So the low-water mark and
the done ranges above it follow from the two, and an entry cannot be in neither. `again` is the redelivery list: entries that
were final before and were asked for once more; they never move the low-water mark.

`disabled` is why nothing is sent until somebody enables it, `paused_until` until when the endpoint asked for nothing,
`failing_since` when the failures began that no success has ended yet (0: none).

While what waited behind a breaker is sent, there are two windows: `back` holds what waited, and the cursor has moved to its end,
so that new entries need not wait for the old ones. The low-water mark is that of `back` then. When the breaker opens once more
meanwhile, `back` grows to the end of the lane: what was taken after its old end is a gap in it.

`taken` is how many entries the lane has had up to the cursor. A lane whose next entry has more before it has lost the
difference to retention. `paced` is when the last attempts were, where their number in a minute is bounded.
`letters` is how many dead letters are to be sent again and wait for room on the redelivery list.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from tidings.clock import Instant
from tidings.delivery.push.breaker import CLOSED, Breaker
from tidings.errors import DataVersionUnsupported
from tidings.log.position import START, Offset

OPEN_LIMIT = 10_000
FORM = 1
UNKNOWN = -1
DUE = Instant(0)
"""Due whatever the clock says: what has had its turn to wait must not wait again because the clock was set back."""


class Item(msgspec.Struct, gc=False):
    """One open entry. `tries` counts finished attempts; `sending` is true while one is on its way and is never saved.

    `key` is the hash of its partition key, for the order per key.
    """

    offset: Offset
    tries: int = 0
    due: Instant = DUE
    since: Instant = Instant(0)
    cause: str = ""
    again: bool = False
    sending: bool = False
    key: int = 0


class Back(msgspec.Struct):
    """The entries after `cursor` and up to `until` that waited, and those of them and before that are open.

    `left` is how many of them were not taken, or UNKNOWN. `gaps` are ranges (first, last) that are not part of it.
    """

    cursor: Offset
    until: Offset
    left: int
    open: dict[Offset, Item]
    gaps: list[tuple[Offset, Offset]] = []

    @property
    def low_water(self) -> Offset:
        return Offset(next(iter(self.open)) - 1) if self.open else self.cursor

    def ranges(self) -> Iterator[tuple[Offset, Offset]]:
        """What was not taken, as ranges: after the one and up to the other."""
        after = self.cursor
        for first, last in self.gaps:
            if first - 1 > after:
                yield after, Offset(first - 1)
            after = max(after, last)
        if self.until > after:
            yield after, self.until

    def waits(self, offset: Offset) -> bool:
        """Whether an entry is in the window and was not taken."""
        return any(after < offset <= until for after, until in self.ranges())


class LaneState:
    """One lane's state. One owner, one thread. Every method leaves a state that may be saved."""

    __slots__ = (
        *(
            "again",
            "back",
            "breaker",
            "cursor",
            "disabled",
            "failing_since",
            "letters",
            "limit",
            "open",
            "paced",
            "paused_until",
            "suspended",
            "taken",
        ),
    )

    def __init__(self, cursor: Offset = START, limit: int = OPEN_LIMIT) -> None:
        self.cursor = cursor
        self.limit = limit
        self.open: dict[Offset, Item] = {}
        self.again: dict[Offset, Item] = {}
        self.back: Back | None = None
        self.suspended = False
        self.disabled = ""
        self.paused_until = Instant(0)
        self.failing_since = Instant(0)
        self.breaker = CLOSED
        self.taken = 0
        self.paced: Sequence[tuple[float, int]] = ()
        self.letters = 0

    @property
    def low_water(self) -> Offset:
        """Everything of the lane at or below is final, redeliveries aside. Items are opened in rising order."""
        opened = Offset(next(iter(self.open)) - 1) if self.open else self.cursor
        return opened if self.back is None else min(opened, self.back.low_water)

    @property
    def size(self) -> int:
        """How many items are open, redeliveries included."""
        return len(self.open) + len(self.again) + (len(self.back.open) if self.back is not None else 0)

    @property
    def room(self) -> int:
        """How many more items may be opened."""
        return self.limit - self.size

    def items(self) -> Iterator[Item]:
        if self.back is not None:
            yield from self.back.open.values()
        yield from self.open.values()
        yield from self.again.values()

    def done_ranges(self) -> Sequence[tuple[Offset, Offset]]:
        """The ranges (first, last) above the low-water mark in which everything is final."""
        undone = [(offset, offset) for offset in self.open]
        if self.back is not None:
            undone += [(offset, offset) for offset in self.back.open]
            undone += [(Offset(after + 1), until) for after, until in self.back.ranges()]
        return _between(self.low_water, [*sorted(undone), (Offset(self.cursor + 1), self.cursor)])

    def item_at(self, offset: Offset) -> Item | None:
        """The open item of this entry, a redelivery included."""
        waited = self.back.open.get(offset) if self.back is not None else None
        return waited or self.open.get(offset) or self.again.get(offset)

    def take(self, offset: Offset, now: Instant, key: int = 0) -> Item:
        """Open the next live entry; the caller has seen that there is room and that it is the first above the cursor."""
        item = self.open[offset] = Item(offset, since=now, key=key)
        self.cursor = offset
        if self.taken != UNKNOWN:
            self.taken += 1
        return item

    def split(self, until: Offset) -> None:
        """What is open, and what follows up to `until`, is the back window; new entries are taken after `until` from now on.

        How many were taken up to there is for `reach` to tell; `back_left` is told then.
        """
        self.back = Back(self.cursor, until, self.taken, self.open)
        self.open, self.cursor, self.taken = {}, until, UNKNOWN

    def extend(self, until: Offset) -> None:
        """The breaker opened once more: what came meanwhile waited too, so the back window goes on to `until`.

        What was taken after its old end is left out. How many are in it is told as after `split`.
        """
        assert self.back is not None
        if self.cursor > self.back.until:
            self.back.gaps = [*self.back.gaps, (Offset(self.back.until + 1), self.cursor)]
        self.back.left = UNKNOWN if UNKNOWN in (self.back.left, self.taken) else self.taken - self.back.left
        self.back.until, self.cursor, self.taken = until, until, UNKNOWN

    def back_left(self) -> None:
        """It is known now how many entries were taken up to the end of the back window: so many are in it."""
        if self.back is not None:
            known = UNKNOWN not in (self.back.left, self.taken)
            self.back.left = self.taken - self.back.left if known else UNKNOWN

    def take_back(self, offset: Offset, now: Instant, key: int = 0) -> Item:
        """Open the next entry of the back window."""
        assert self.back is not None
        item = self.back.open[offset] = Item(offset, since=now, key=key)
        self.back.cursor = offset
        if self.back.left != UNKNOWN:
            self.back.left -= 1
        return item

    def back_read(self) -> int:
        """There is nothing more in the back window; how many of its entries are gone and were never taken."""
        assert self.back is not None
        missed = max(0, self.back.left)
        self.back.left, self.back.cursor = 0, self.back.until
        self._join()
        return missed

    def _join(self) -> None:
        """One window again, when everything of the other one is final."""
        if self.back is not None and self.back.cursor >= self.back.until and not self.back.open:
            self.back = None

    def reach(self, before: int) -> int:
        """The next entry of the lane has `before` entries before it: how many of them are gone and were never taken.

        Asking again says none. Where it was not known how many were taken, it is known from now on.
        """
        missed = 0 if self.taken == UNKNOWN else before - self.taken
        self.taken = before
        return max(0, missed)

    def holds(self, item: Item) -> bool:
        """Whether this very item is still open: a rewind or a skip may have taken it away while it was being sent."""
        return self._table(item).get(item.offset) is item

    def _table(self, item: Item) -> dict[Offset, Item]:
        if item.again:
            return self.again
        return self.back.open if self.back is not None and item.offset in self.back.open else self.open

    def close(self, item: Item) -> bool:
        """The item is final. False: it was taken away meanwhile, and what came of it counts no more."""
        if not self.holds(item):
            return False
        del self._table(item)[item.offset]
        self._join()
        return True

    def retry(self, item: Item, due: Instant, cause: str) -> bool:
        """The item is tried again at `due`. False: it was taken away meanwhile."""
        item.sending = False
        item.due, item.cause = due, cause
        return self.holds(item)

    def redeliver(self, offsets: Iterable[Offset], now: Instant) -> Sequence[Item]:
        """Put entries on the redelivery list; the items that are now due. What is yet to be taken is sent anyway."""
        due = []
        for offset in offsets:
            if offset > self.cursor or (self.back is not None and self.back.waits(offset)):
                continue
            item = self.item_at(offset)
            if item is None:
                item = self.again[offset] = Item(offset, since=now, again=True)
            if not item.sending:
                item.due = DUE
                due.append(item)
        return due

    def rewind(self, to: Offset) -> None:
        """Move the cursor: the next live entry is the first one above `to`.

        Back: what is open at or below `to` stays open, what is above comes again. Forward: what is open is skipped too.
        How many were taken up to there is for `reach` to tell.
        """
        if self.back is not None:
            self.open = dict(sorted({**self.back.open, **self.open}.items()))
            self.cursor, self.back = max(self.back.cursor, min(to, self.cursor)), None
        if to >= self.cursor:
            self.open.clear()
        else:
            self.open = {offset: item for offset, item in self.open.items() if offset <= to}
            self.again = {offset: item for offset, item in self.again.items() if offset <= to}
        self.cursor = to
        self.taken = UNKNOWN


def _between(last: Offset, undone: Iterable[tuple[Offset, Offset]]) -> list[tuple[Offset, Offset]]:
    """The ranges after `last` that rising ranges leave free."""
    ranges = []
    for first, until in undone:
        if first > last + 1:
            ranges.append((Offset(last + 1), Offset(first - 1)))
        last = max(last, until)
    return ranges


class Row(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One item as it is kept; may grow at its end."""

    offset: int
    tries: int
    due: int
    since: int
    cause: str
    key: int = 0


class Saved(msgspec.Struct, frozen=True, array_like=True):
    """The state as it is kept. The first field says which form the rest has; a form may grow at its end."""

    form: int
    cursor: int
    suspended: bool
    open: list[Row]
    again: list[Row]
    taken: int = UNKNOWN
    disabled: str = ""
    paused_until: int = 0
    failing_since: int = 0
    breaker: Breaker = CLOSED
    back: tuple[int, int, int, list[Row]] | None = None
    gaps: Sequence[tuple[int, int]] = ()
    paced: Sequence[tuple[float, int]] = ()
    letters: int = 0


def encode(state: LaneState) -> bytes:
    """The state as bytes. What is being sent is saved as open, so that a crash sends it again."""
    items, again = [*map(_row, state.open.values())], [*map(_row, state.again.values())]
    kept = state.back
    back = None if kept is None else (kept.cursor, kept.until, kept.left, [*map(_row, kept.open.values())])
    gaps = [] if kept is None else kept.gaps
    wait = (state.disabled, state.paused_until, state.failing_since, state.breaker, back, gaps, state.paced, state.letters)
    return msgspec.msgpack.encode(Saved(FORM, state.cursor, state.suspended, items, again, state.taken, *wait))


def decode(body: bytes, limit: int = OPEN_LIMIT) -> LaneState:
    """The state that `encode` saved. Raises DataVersionUnsupported for a newer form."""
    form = msgspec.msgpack.decode(body, type=list[msgspec.Raw])[:1]
    if not form or msgspec.msgpack.decode(form[0]) != FORM:
        raise DataVersionUnsupported("a lane state was written by another version", found=body[:16], expected=f"form {FORM}")
    saved = msgspec.msgpack.decode(body, type=Saved)
    state = LaneState(Offset(saved.cursor), limit)
    state.suspended = saved.suspended
    state.disabled = saved.disabled
    state.paused_until, state.failing_since = Instant(saved.paused_until), Instant(saved.failing_since)
    state.breaker = saved.breaker
    state.paced, state.letters = saved.paced, saved.letters
    state.taken = saved.taken
    state.open = {item.offset: item for item in map(_item, saved.open)}
    state.again = {item.offset: item for item in map(_item, saved.again)}
    for item in state.again.values():
        item.again = True
    if saved.back is not None:
        cursor, until, left, rows = saved.back
        gaps = [(Offset(first), Offset(last)) for first, last in saved.gaps]
        state.back = Back(Offset(cursor), Offset(until), left, {item.offset: item for item in map(_item, rows)}, gaps)
    return state


def _row(item: Item) -> Row:
    return Row(item.offset, item.tries, item.due, item.since, item.cause, item.key)


def _item(row: Row) -> Item:
    return Item(Offset(row.offset), row.tries, Instant(row.due), Instant(row.since), row.cause, key=row.key)
