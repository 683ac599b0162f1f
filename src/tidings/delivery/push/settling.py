"""After an attempt: asks `decide.after` what follows, does it to the lane, and writes it down."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import assert_never

from tidings.clock import SECOND, Clock, Instant
from tidings.delivery.push.causes import TIMEOUTS, target_of
from tidings.delivery.push.decide import DeadLetter, Delivered, Disable, Outcome, Park, RetryAt, Times, Verdict, after
from tidings.delivery.push.lane import DUE, Item
from tidings.delivery.push.ledger import Ledger
from tidings.delivery.push.pushing import EXPIRED, Parcel, PushLane
from tidings.delivery.push.store import Attempted, Burial, DeliveryStore, Tally, position_of
from tidings.delivery.push.stripped import Stripped
from tidings.delivery.push.timers import Timers
from tidings.log.port import LanesReader, LogReader
from tidings.log.position import Offset
from tidings.observe.board import BUCKETS, Board
from tidings.registry.wishes import Tracking

UNTRACKED = frozenset(("retrying", "waiting"))
"""Facts about the way to an end, kept only where everything is tracked."""

LAST = Offset((1 << 58) - 1)
"""Beyond every offset: all that there was."""


class Settling:
    """Applies outcomes. One event loop; nothing here waits."""

    def __init__(self, ledger: Ledger, timers: Timers, board: Board, clock: Clock, chance: Callable[[], float]) -> None:
        self._ledger = ledger
        self._timers = timers
        self._board = board
        self._now = clock.now
        self._chance = chance
        self._buckets = [0] * (len(BUCKETS) + 1)
        self._seconds = 0.0

    def settle(self, lane: PushLane, items: Sequence[Item], parcel: Parcel, outcome: Outcome) -> Verdict:
        """Apply what came of an attempt to its items. What else follows (a burial, an open breaker, …) is for the caller."""
        lead = items[0]
        now = self._now()
        # A redelivery has its time from when it was asked for, however old the event is.
        times = Times(now, lead.since, lead.since if lead.again else parcel.published or lead.since)
        verdict = self._judged(lane, after(outcome, lane.retry, lead.tries + 1, times, self._chance()), now)
        self._buckets[bisect_left(BUCKETS, outcome.duration)] += 1
        self._seconds += outcome.duration
        delivered = isinstance(verdict, Delivered)
        lane.pace.ended(delivered, isinstance(verdict, RetryAt) and verdict.asked)
        if delivered:
            lane.tally.bytes += len(parcel.body)
            lane.tally.last_delivered = now
        for item in items:
            item.sending = False
            item.tries += 1
            if delivered:
                self._delivered(lane, item, outcome, now)
            else:
                self._failed(lane, item, outcome, verdict, now)
        return verdict

    def _judged(self, lane: PushLane, verdict: Verdict, now: Instant) -> Verdict:
        """The verdict in the light of the attempts before: an endpoint that only fails for too long is given up."""
        state = lane.state
        if isinstance(verdict, Delivered):
            state.failing_since = Instant(0)
        elif not state.failing_since:
            state.failing_since = now
        elif lane.policy is not None and now - state.failing_since > lane.policy.disable_after * SECOND:
            return Disable("failing")
        return verdict

    def _failed(self, lane: PushLane, item: Item, outcome: Outcome, verdict: Verdict, now: Instant) -> None:
        count_failure(lane.tally, outcome)
        self._board.count("tidings_attempts_failed_total", subscription=lane.name)
        match verdict:
            case RetryAt(at):
                self._record(lane, item, "retrying", now, outcome)
                if lane.state.retry(item, at, outcome.reason):
                    self._timers.add(lane, item, lane.retry.longest_wait)
            case DeadLetter():
                self._record(lane, item, "dead", now, outcome)
                item.cause = outcome.reason
            case Park() | Disable():
                self._record(lane, item, "waiting", now, outcome)
                if isinstance(verdict, Park):
                    item.tries = 0
                if lane.state.retry(item, DUE, outcome.reason):
                    lane.due.append(item)
            case Delivered():
                raise AssertionError("what was delivered has not failed")
            case _:
                assert_never(verdict)

    def show(self) -> None:
        """Bring the times of attempts to the board."""
        if any(self._buckets):
            self._board.observe_many("tidings_attempt_seconds", self._buckets, self._seconds)
            self._buckets, self._seconds = [0] * (len(BUCKETS) + 1), 0.0

    def expire(self, lane: PushLane, item: Item) -> None:
        """Retention removed the entry before it could be sent."""
        if self._close(lane, item):
            lane.tally.expired += 1
            self._board.count("tidings_expired_total")
            self._record(lane, item, "expired", self._now(), Outcome(cause=EXPIRED))
            if item.again:
                self._ledger.released(lane, item.offset)

    def missed(self, lane: PushLane, count: int, end: Offset | None, after: Offset | None = None) -> None:
        """Retention removed entries of the lane, before `end` if one follows, before they were read: one record for all.

        They were after `after`, or after the cursor.

        The lane's state knows of them already and is saved together with this, so a crash counts them once.
        """
        lane.tally.expired += count
        self._board.count("tidings_expired_total", count)
        cursor = lane.state.cursor if after is None else after
        cause = f"{EXPIRED} unread: {count} after {cursor}" + ("" if end is None else f" and before {end}")
        upto = LAST if end is None else Offset(end - 1)
        record = Attempted(lane.key, Offset(cursor + 1), "expired", 0, self._now(), None, None, cause, upto=upto)
        self._ledger.attempted(lane, record)

    def put_off(self, lane: PushLane, item: Item, seconds: float) -> None:
        """Nothing can be done about the item now; its turn comes again."""
        if lane.state.retry(item, Instant(self._now() + round(seconds * SECOND)), item.cause):
            self._timers.add(lane, item, seconds)
            self._ledger.touch(lane)

    def bury(self, lane: PushLane, item: Item, reason: str, copy: tuple[bytes, bytes | None]) -> None:
        """The entry becomes a dead letter with its own copy of the event."""
        if not self._close(lane, item):
            return
        head, data = copy
        now = self._now()
        lane.tally.dead += 1
        self._board.count("tidings_dead_letters_total", subscription=lane.name)
        self._ledger.buried(lane, Burial(lane.key, item.offset, reason, item.tries, item.since, now, head, data))

    def unreadable(self, lane: PushLane, item: Item, reason: str) -> None:
        """The entry cannot be laid out at all: it becomes a dead letter without an attempt."""
        self._record(lane, item, "dead", self._now(), Outcome(cause=reason))

    def _delivered(self, lane: PushLane, item: Item, outcome: Outcome, now: Instant) -> None:
        self._close(lane, item)
        lane.tally.delivered += 1
        if item.tries == 1 and not item.again:
            lane.firsts.add(item.offset, now, outcome.duration * 1000, outcome.status or 0)
            self._ledger.touch(lane)
            return
        self._record(lane, item, "delivered", now, outcome)
        if item.again:
            self._ledger.released(lane, item.offset)

    def _close(self, lane: PushLane, item: Item) -> bool:
        """The item is final. In an ordered lane the next of its line, or the next batch, goes out when that is durable."""
        if not lane.state.close(item):
            return False
        if (lane.gate.ordered and not item.again) or lane.batch is not None:
            self._ledger.leaving(lane, item)
        return True

    def _record(self, lane: PushLane, item: Item, state: str, now: Instant, outcome: Outcome) -> None:
        policy = lane.policy
        if state in UNTRACKED and policy is not None and policy.tracking is not Tracking.ALL:
            # The lane's own state knows how it stands; only the way there is not kept.
            self._ledger.touch(lane)
            return
        cause = "" if state == "delivered" else outcome.reason
        took = outcome.duration * 1000 if outcome.duration else None
        target = "" if policy is None else target_of(policy.url)
        record = Attempted(lane.key, item.offset, state, item.tries, now, outcome.status, took, cause, target)
        self._ledger.attempted(lane, record)


def count_failure(tally: Tally, outcome: Outcome) -> None:
    """Count a failed attempt by its kind."""
    tally.failed_attempts += 1
    tally.last_error = outcome.reason
    match (outcome.status or 0) // 100:
        case 4:
            tally.client_errors += 1
        case 5:
            tally.server_errors += 1
        case 0 if outcome.cause in TIMEOUTS:
            tally.timeouts += 1
        case _:
            tally.other_errors += 1


class Copies:
    """Where the copy of an event comes from when it becomes a dead letter."""

    def __init__(self, lanes: LanesReader, log: LogReader, store: DeliveryStore) -> None:
        self._stripped = Stripped(lanes)
        self._log = log
        self._store = store

    def of(self, lane: PushLane, offset: Offset) -> tuple[bytes, bytes | None]:
        """Head and data as they are sent: from the log, else from the dead letter it was before. Empty when both are gone.

        Raises LogUnavailable: the copy is there, and not to be had now.
        """
        found = self._log.fetch([position_of(lane.key, offset)])
        for _, stored, data in self._stripped.payloads(lane.key, self._stripped.entries(lane.key, [offset]), found):
            return stored.head, data
        letter = self._store.buried(lane.key, [offset]).get(offset)
        return (letter.head, letter.data) if letter is not None else (b"", None)
