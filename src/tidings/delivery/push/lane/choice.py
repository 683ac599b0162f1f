"""What a lane does next, for callbacks and streams alike. Pure: the state and what is allowed come in, the choice goes out.

What is open and due goes first: redeliveries, then windows from the oldest. Then entries are taken, those that waited behind a
breaker in turn with new ones. What is not read yet is to be read; meanwhile others may go.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

from tidings.clock import SECOND, Instant
from tidings.delivery.push.lane.entries import WAITING, Item
from tidings.delivery.push.lane.state import LaneState
from tidings.delivery.push.lane.window import Window
from tidings.delivery.push.policy.policy import BatchPolicy

LOADED_AT_ONCE = 32
SEPARATOR = 2
"""Bytes that each event of a batch needs beside its own."""


class Allowed(NamedTuple):
    """What the lane may do now. `now` by the clock, `at` in monotonic seconds.

    `take`: new items may be opened. `waited_at`: not before then one of those that waited behind a breaker. `in_turn`: whether one
    of those is next; None: they all come before new ones. `delay`: seconds that an entry has to be old; `delayed`: those up to a
    number wait until then, since they were published later than now. `in_order`: nothing overtakes what is due and still being
    read, as on a stream.
    """

    now: Instant
    at: float
    take: bool = True
    waited_at: float = 0.0
    in_turn: bool | None = None
    delay: float = 0.0
    delayed: tuple[int, float] = (0, 0.0)
    in_order: bool = False


class Attempt(NamedTuple):
    """Send these: one, or a batch."""

    items: Sequence[Item]


class Take(NamedTuple):
    """Open the next entry of a window, which was read; so many of them where they are gathered into a batch."""

    window: Window
    entries: int = 1


class Refill(NamedTuple):
    """Read on in a window."""

    window: Window


class Load(NamedTuple):
    """Read these, which are open and due. `window` is where they are."""

    window: Window
    items: Sequence[Item]


class Wait(NamedTuple):
    """Nothing until then (monotonic seconds), if nothing happens."""

    until: float


class Nothing(NamedTuple):
    """Nothing until something happens."""


Choice: TypeAlias = Attempt | Take | Refill | Load | Wait | Nothing

NOTHING = Nothing()


def choose(state: LaneState, allowed: Allowed, batch: BatchPolicy | None = None) -> Choice:
    """What to do next."""
    if (state.barriers or state.abandoned) and (state.ordered or state.batched):
        return NOTHING
    if batch is not None:
        return _together(state, allowed, batch)
    if allowed.take and not allowed.delay and takes_next(state):
        return Take(state.windows[-1])
    return _due_or_next(state, allowed)


def takes_next(state: LaneState) -> bool:
    """Whether a new entry is taken next, if that is allowed and nothing is delayed or gathered. It nearly always is."""
    live = state.windows[-1]
    if not live.ready or len(state.windows) > 1 or state.again.open or state.barriers or state.abandoned:
        return False
    return live.top() is None


def _due_or_next(state: LaneState, allowed: Allowed) -> Choice:
    at, wait = allowed.at, math.inf
    live = state.windows[-1]
    for window in (state.again, *state.windows) if len(state.windows) > 1 or state.again.open else (live,):
        item = window.top()
        if item is None:
            continue
        due = item.when if window is live or window is state.again else max(item.when, allowed.waited_at)
        if due > at:
            wait = min(wait, due)
        elif item.parcel is not None:
            return Attempt((item,))
        elif not window.loading:
            return Load(window, window.due_without_parcel(at, LOADED_AT_ONCE))
        elif allowed.in_order:
            return NOTHING
    if not allowed.take:
        return NOTHING if wait == math.inf else Wait(wait)
    return _next_entry(state, allowed, wait)


def _next_entry(state: LaneState, allowed: Allowed, wait: float) -> Choice:
    """Take a new item, or wait for one."""
    taking = [_taken(window, allowed) for window in _in_turn(state, allowed)]
    chosen = next((choice for choice in taking if choice is not None and not isinstance(choice, Wait)), None)
    if chosen is not None:
        return chosen
    until = min((choice.until for choice in taking if isinstance(choice, Wait)), default=math.inf)
    if len(state.windows) > 1 and allowed.waited_at > allowed.at:
        until = min(until, allowed.waited_at)
    until = min(wait, until)
    return NOTHING if until == math.inf else Wait(until)


def _in_turn(state: LaneState, allowed: Allowed) -> Sequence[Window]:
    """The windows to take from, the first one first."""
    if len(state.windows) == 1:
        return state.windows
    waited = [window for window in state.waited if not window.exhausted][:1]
    if not waited:
        return [state.live]
    held = allowed.waited_at > allowed.at
    if state.ordered or state.batched:
        return [] if held else waited
    if held or allowed.in_turn is None:
        return [state.live] if held else waited
    return [*waited, state.live] if allowed.in_turn else [state.live, *waited]


def _taken(window: Window, allowed: Allowed) -> Choice | None:
    """How to come to the next entry of a window; None: it has none now."""
    if window.ready:
        wait = _delay(window, allowed) if allowed.delay else 0.0
        return Wait(allowed.at + wait) if wait > 0 else Take(window)
    return Refill(window) if window.more and not window.reading and not window.exhausted else None


def _delay(window: Window, allowed: Allowed) -> float:
    """Seconds until the next entry is old enough."""
    parcel = window.ready[0]
    wait = (parcel.published - allowed.now) / SECOND + allowed.delay
    if wait <= allowed.delay:
        return wait
    # It was published later than now: the clock was set back, so it waits from when it is seen.
    upto, until = allowed.delayed
    return min(allowed.delay, until - allowed.at) if parcel.number <= upto else allowed.delay


# ---- batches


def _together(state: LaneState, allowed: Allowed, policy: BatchPolicy) -> Choice:
    """The lane's batch, if it is to go out now. One at a time, the next when the outcome of the last is durable."""
    if state.closing:
        return NOTHING
    if state.batch:
        return _sealed(state, allowed)
    members: list[Item] = []
    size, wait = 0, math.inf
    for item in _candidates(state, allowed):
        if item.when > allowed.at:
            # Its place is kept: nothing overtakes it.
            wait = item.when
            break
        if item.parcel is None:
            return _loaded(state, item, allowed)
        size += len(item.parcel.body) + SEPARATOR
        if members and size > policy.bytes:
            return Attempt(members)
        members.append(item)
        if len(members) >= policy.size or size >= policy.bytes:
            return Attempt(members)
    choice = _next_entry(state, allowed, wait) if allowed.take and wait == math.inf else Wait(wait)
    if isinstance(choice, Take) and not allowed.delay:
        return Take(choice.window, _missing(choice.window, policy, len(members), size))
    if not members or not isinstance(choice, Wait | Nothing):
        return NOTHING if choice == Wait(math.inf) else choice
    left = policy.time - _gathering(members[0], allowed)
    return (
        Wait(min(allowed.at + left, choice.until if isinstance(choice, Wait) else math.inf)) if left > 0 else Attempt(members)
    )


def _missing(window: Window, policy: BatchPolicy, members: int, size: int) -> int:
    """How many of the entries that were read make the batch full, the one included that does not fit."""
    for count, parcel in enumerate(window.ready, start=1):
        size += len(parcel.body) + SEPARATOR
        if members + count >= policy.size or size >= policy.bytes:
            return count
    return len(window.ready)


def _sealed(state: LaneState, allowed: Allowed) -> Choice:
    lead = state.batch[0]
    if lead.stage is not WAITING:
        return NOTHING
    if lead.when > allowed.at:
        return Wait(lead.when)
    missing = [item for item in state.batch if item.parcel is None]
    if missing:
        return NOTHING if state.live.loading else Load(state.live, missing)
    return Attempt(state.batch)


def _candidates(state: LaneState, allowed: Allowed) -> Iterator[Item]:
    """Open items in the order in which they are to go."""
    yield from (item for item in state.again.open.values() if item.stage is WAITING and item.when <= allowed.at)
    for window in state.windows:
        yield from (item for item in window.open.values() if item.stage is WAITING)


def _loaded(state: LaneState, first: Item, allowed: Allowed) -> Choice:
    if state.live.loading:
        return NOTHING
    missing = [item for item in _candidates(state, allowed) if item.parcel is None and item.when <= allowed.at]
    return Load(state.live, missing[:LOADED_AT_ONCE] or [first])


def _gathering(first: Item, allowed: Allowed) -> float:
    """Seconds since the batch began, by either clock: an event may have waited long already, or the clock was set back."""
    return max((allowed.now - first.since) / SECOND, allowed.at - first.when)
