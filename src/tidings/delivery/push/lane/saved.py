"""A lane's state as it is kept: the lane itself with its fresh items, and a row for each item that failed or is sent again.

Only rows that changed are saved, so that a lane with thousands of open items costs no more than what happens in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from tidings.clock import Instant
from tidings.delivery.push.lane.breaker import CLOSED, Breaker
from tidings.delivery.push.lane.entries import Item
from tidings.delivery.push.lane.state import OPEN_LIMIT, LaneState
from tidings.delivery.push.lane.window import Window
from tidings.errors import DataVersionUnsupported
from tidings.lanes.port import Mark
from tidings.log.position import Position

FORM = 3


class SavedItem(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One item as it is kept; may grow at its end."""

    number: int
    position: Position
    tries: int
    due: int
    since: int
    cause: str
    key: int
    again: bool
    batch: int


class SavedState(msgspec.Struct, frozen=True, array_like=True):
    """The lane as it is kept. The first field says which form the rest has; a form may grow at its end.

    `windows`: the marks of the last entry that was taken, and of the window's last one.
    """

    form: int
    windows: Sequence[tuple[Mark, Mark]]
    fresh: Sequence[SavedItem]
    suspended: bool
    disabled: str = ""
    paused_until: int = 0
    failing_since: int = 0
    breaker: Breaker = CLOSED
    paced: Sequence[tuple[float, int]] = ()
    letters: int = 0
    filling: int = 0


def encode(state: LaneState) -> bytes:
    """The lane as bytes, without the items that have rows. What is being sent is saved as open, so that a crash sends it again."""
    windows = [(Mark(one.cursor, one.place), Mark(one.last, one.last_place)) for one in state.windows]
    fresh = [*map(_row, state.fresh.values())]
    stops = (state.suspended, state.disabled, state.paused_until, state.failing_since)
    rest = (state.breaker, state.paced, state.letters, state.filling)
    return msgspec.msgpack.encode(SavedState(FORM, windows, fresh, *stops, *rest))


def encode_item(item: Item) -> bytes:
    """An item's row."""
    return msgspec.msgpack.encode(_row(item))


_saved = msgspec.msgpack.Decoder(SavedState).decode
_row_in = msgspec.msgpack.Decoder(SavedItem).decode


def decode(body: bytes, rows: Iterable[bytes] = (), limit: int = OPEN_LIMIT) -> LaneState:
    """The state that was saved as this. Raises DataVersionUnsupported for another form."""
    form = msgspec.msgpack.decode(body, type=list[msgspec.Raw])[:1]
    if not form or msgspec.msgpack.decode(form[0]) != FORM:
        raise DataVersionUnsupported("a lane state was written by another version", found=body[:16], expected=f"form {FORM}")
    saved = _saved(body)
    state = LaneState(limit=limit)
    state.windows = [Window(taken, last) for taken, last in saved.windows]
    state.suspended = saved.suspended
    state.disabled = saved.disabled
    state.paused_until, state.failing_since = Instant(saved.paused_until), Instant(saved.failing_since)
    state.breaker = saved.breaker
    state.paced, state.letters, state.filling = saved.paced, saved.letters, saved.filling
    kept = [_item(_row_in(row), kept=True) for row in rows]
    state.restore([*kept, *(_item(row, kept=False) for row in saved.fresh)])
    return state


def _row(item: Item) -> SavedItem:
    first = (item.number, item.position, item.tries, item.due, item.since, item.cause)
    return SavedItem(*first, item.key, item.again, item.batch)


def _item(row: SavedItem, *, kept: bool) -> Item:
    first = (row.number, row.position, row.tries, Instant(row.due), Instant(row.since), row.cause)
    return Item(*first, again=row.again, key=row.key, batch=row.batch, kept=kept)
