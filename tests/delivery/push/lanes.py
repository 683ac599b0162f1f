"""Lane states for tests, in which an entry's number is its offset."""

from __future__ import annotations

from collections.abc import Iterable

from tests.builders import a_position
from tidings.clock import Instant
from tidings.delivery.push.lane.entries import Item, Parcel
from tidings.delivery.push.lane.state import LaneState
from tidings.lanes.port import Mark


def a_state(cursor: int = 0, items: Iterable[Item] = (), limit: int = 100) -> LaneState:
    """A lane that was taken up to there, with these items open."""
    state = LaneState(a_mark(cursor), limit)
    state.restore(items)
    return state


def an_item(number: int, **fields: object) -> Item:
    return Item(number, a_position(number), **fields)  # type: ignore[arg-type]


def a_parcel(number: int, body: bytes = b"{}", key: int = 0, **headers: str) -> Parcel:
    named = {"content-type": "application/json", **headers}
    return Parcel(number, a_position(number), named, body, published=Instant(1_234_567), key=key)


def a_mark(number: int) -> Mark:
    return Mark(number, a_position(number))


def taken(state: LaneState, number: int, now: int = 1, key: int = 0) -> Item:
    """The next entry of the live window, opened."""
    return state.take(state.live, a_parcel(number, key=key), Instant(now), float(now))
