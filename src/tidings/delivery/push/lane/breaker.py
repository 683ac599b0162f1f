"""The circuit breaker of one lane, as a value and its moves. Pure; `probing.py` asks the endpoints.

CLOSED → OPEN when an event has used up its retries. OPEN → REPUBLISHING when a probe succeeds: what waited is sent, oldest first,
after a pause that grows while the breaker keeps opening. REPUBLISHING → CLOSED when all that waited is final, → OPEN when
retries are used up again. What waits stays in its lane: nothing is copied.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tidings.clock import SECOND, Instant
from tidings.delivery.push.policy.decision import Outcome
from tidings.delivery.push.policy.policy import BreakerPolicy
from tidings.delivery.push.policy.retries import asked_wait
from tidings.delivery.push.reader import BreakerView
from tidings.log.position import Position

LONGEST_ASKED = 3600.0
USUAL = BreakerPolicy()


class Status(StrEnum):
    """Whether attempts are made, and why not."""

    CLOSED = "closed"
    OPEN = "open"
    REPUBLISHING = "republishing"


class Breaker(msgspec.Struct, frozen=True, array_like=True, omit_defaults=False):
    """Where a breaker stands. Instants are 0 when there are none.

    `until`: the number of the last entry that waited when REPUBLISHING began.

    `probe` is the status of the last probe (0: no answer), `why` its cause where it failed.
    """

    status: Status = Status.CLOSED
    origin: Position | None = None
    opened: Instant = Instant(0)
    last_opened: Instant = Instant(0)
    modified: Instant = Instant(0)
    loops: int = 0
    postponed_until: Instant = Instant(0)
    until: int = 0
    probed_at: Instant = Instant(0)
    probe: int = 0
    why: str = ""
    next_probe: Instant = Instant(0)

    @property
    def sends(self) -> bool:
        return self.status is not Status.OPEN


CLOSED = Breaker()


def opened(breaker: Breaker, origin: Position, now: Instant, interval: float) -> Breaker:
    """An event used up its retries. An open breaker stays as it is."""
    if breaker.status is Status.OPEN:
        return breaker
    return msgspec.structs.replace(
        breaker,
        status=Status.OPEN,
        origin=origin,
        opened=now,
        last_opened=breaker.last_opened or now,
        modified=now,
        postponed_until=Instant(0),
        until=0,
        next_probe=Instant(now + round(interval * SECOND)),
    )


def probed(breaker: Breaker, outcome: Outcome, now: Instant, end: int, asks: BreakerPolicy = USUAL) -> Breaker:
    """A probe came back; `end` is the number of the lane's last entry now. Only an open breaker moves."""
    if breaker.status is not Status.OPEN:
        return breaker
    well = outcome.status in asks.well_at
    seen = msgspec.structs.replace(
        breaker, modified=now, probed_at=now, probe=outcome.status or 0, why="" if well else outcome.reason
    )
    if well:
        return _republishing(seen, now, end, asks)
    return msgspec.structs.replace(seen, next_probe=_next(outcome, now, asks.interval))


def _next(outcome: Outcome, now: Instant, interval: float) -> Instant:
    asked = asked_wait(outcome.retry_after, now) or 0.0
    return Instant(now + round(max(interval, min(asked, LONGEST_ASKED)) * SECOND))


def _republishing(breaker: Breaker, now: Instant, end: int, asks: BreakerPolicy) -> Breaker:
    """HOR-128: a breaker that opened again soon after the last time waits longer before it sends."""
    # At the first opening `last_opened` is that opening's own time, which makes it the first loop.
    soon = now - breaker.last_opened < asks.loop_window * SECOND
    loops = breaker.loops + 1 if soon else 0
    return msgspec.structs.replace(
        breaker,
        status=Status.REPUBLISHING,
        loops=loops,
        last_opened=breaker.opened,
        postponed_until=Instant(now + round(loop_wait(loops, asks.loop_max) * SECOND)) if loops > 1 else Instant(0),
        until=end,
        next_probe=Instant(0),
    )


def loop_wait(loops: int, longest: float = 3600.0) -> float:
    """Seconds before what waited is sent again."""
    return 0.0 if loops < 2 else min(2.0 ** min(loops - 1, 32), longest)


def bounded(breaker: Breaker, now: Instant, policy: BreakerPolicy = USUAL) -> Breaker:
    """The same breaker, which waits no longer than any may: the machine's clock was set back."""
    latest = Instant(now + round(policy.loop_max * SECOND))
    if breaker.postponed_until <= latest:
        return breaker
    return msgspec.structs.replace(breaker, postponed_until=latest)


def caught_up(breaker: Breaker, low_number: int, now: Instant) -> Breaker:
    """CLOSED when everything that waited is final."""
    if breaker.status is Status.REPUBLISHING and low_number >= breaker.until:
        return closed(breaker, now)
    return breaker


def closed(breaker: Breaker, now: Instant) -> Breaker:
    """Closed, by itself or because somebody asked. How often it opened lately is remembered."""
    if breaker.status is Status.CLOSED:
        return breaker
    return msgspec.structs.replace(
        breaker, status=Status.CLOSED, modified=now, postponed_until=Instant(0), until=0, next_probe=Instant(0), why=""
    )


def renumbered(breaker: Breaker, by: int) -> Breaker:
    """The same breaker where all numbers of the lane are `by` further down."""
    return msgspec.structs.replace(breaker, until=max(0, breaker.until - by)) if breaker.until else breaker


def shown(breaker: Breaker) -> BreakerView:
    """The breaker as readers see it."""
    return BreakerView(
        status=breaker.status.value,
        origin=breaker.origin,
        last_opened=breaker.last_opened or None,
        modified=breaker.modified or None,
        loops=breaker.loops,
        postponed_until=breaker.postponed_until or None,
        probed_at=breaker.probed_at or None,
        probe=breaker.probe or None,
        why=breaker.why,
        next_probe=breaker.next_probe or None,
    )
