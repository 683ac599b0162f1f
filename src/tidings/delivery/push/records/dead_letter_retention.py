"""Dead letters of subscriptions with a retention of their own: their copies end when it does (HOR-159)."""

from __future__ import annotations

from collections.abc import Iterable

from tidings.clock import Clock
from tidings.delivery.push.lane.push_lane import PushLane
from tidings.delivery.push.ledger import Ledger
from tidings.delivery.push.store import DeliveryStore
from tidings.log.port import EventLog
from tidings.registry.rules.retention import RetentionPeriod

SLICE = 50
MOST = 2000
"""Letters of one lane that are looked at in one round."""


class LetterSweep:
    """Lets copies go. The log keeps an event at least as long as any retention, so what it has no more is over."""

    def __init__(self, store: DeliveryStore, events: EventLog, ledger: Ledger, clock: Clock) -> None:
        self._store = store
        self._events = events
        self._ledger = ledger
        self._clock = clock

    async def sweep(self, lanes: Iterable[PushLane]) -> int:
        """One round over these lanes; how many went. Raises LogUnavailable."""
        gone = 0
        for lane in lanes:
            kept = lane.policy.kept if lane.policy is not None else None
            if kept is not None and kept.own and lane.tally.dead:
                gone += await self._of(lane, kept)
        return gone

    async def _of(self, lane: PushLane, kept: RetentionPeriod) -> int:
        gone, now = 0, self._clock.now()
        letters = self._store.letters(lane.number)[:MOST]
        for begin in range(0, len(letters), SLICE):
            some = letters[begin : begin + SLICE]
            found = await self._events.fetch(some)
            over = [
                position
                for position in some
                if (entry := found.get(position)) is None or kept.until(entry.position, entry.at) <= now
            ]
            for position in over:
                self._ledger.released(lane, position)
            gone += len(over)
            # Later ones are younger; only where the retention was changed may one of them be over before.
            if len(over) < len(some) and not kept.former:
                break
        return gone
