"""After an attempt: asks `decide.after` what follows, does it to the lane, and writes it down."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import assert_never

from tidings.clock import SECOND, Clock, Instant
from tidings.delivery.push.lane.entries import CLOSING, DUE, EXPIRED, Item
from tidings.delivery.push.lane.push_lane import Job, PushLane
from tidings.delivery.push.ledger import Ledger
from tidings.delivery.push.policy.decision import (
    BecomeDeadLetter,
    Delivered,
    DisableLane,
    Outcome,
    Park,
    RetryAt,
    Times,
    Verdict,
    after,
)
from tidings.delivery.push.policy.policy import Policy
from tidings.delivery.push.records.causes import TIMEOUTS, target_of
from tidings.delivery.push.store import Attempted, Burial, LaneTally
from tidings.lanes.port import Mark
from tidings.log.position import Position, last_place, place_after, place_before
from tidings.observe.part_status import BUCKETS, PartStatus
from tidings.registry.delivery_options import Tracking

UNTRACKED = frozenset(("retrying", "waiting"))
"""Facts about the way to an end, kept only where everything is tracked."""


class Outcomes:
    """Applies outcomes. One event loop; nothing here waits."""

    def __init__(self, ledger: Ledger, board: PartStatus, clock: Clock, chance: Callable[[], float]) -> None:
        self._ledger = ledger
        self._board = board
        self._clock = clock
        self._now = clock.now
        self._chance = chance
        self._buckets = [0] * (len(BUCKETS) + 1)
        self._seconds = 0.0

    def apply(self, job: Job, outcome: Outcome) -> Verdict:
        """Apply what came of an attempt to its items, by the policy it was made with. The caller does what follows for the lane."""
        lane, items, parcel, policy = job
        lead = items[0]
        now = self._now()
        # A redelivery has its time from when it was asked for, however old the event is.
        times = Times(now, lead.since, lead.since if lead.again else parcel.published or lead.since)
        verdict = _judged(job, after(outcome, policy.retry, lead.tries + 1, times, self._chance()), now)
        self._buckets[bisect_left(BUCKETS, outcome.duration)] += 1
        self._seconds += outcome.duration
        delivered = isinstance(verdict, Delivered)
        lane.pace.ended(delivered, isinstance(verdict, RetryAt) and verdict.asked)
        if delivered:
            lane.tally.bytes += len(parcel.body)
            lane.tally.last_delivered = now
        for item in items:
            item.tries += 1
            if delivered:
                self._delivered(lane, item, outcome, now, policy)
            else:
                self._failed(job, item, outcome, verdict, now)
        return verdict

    def _failed(self, job: Job, item: Item, outcome: Outcome, verdict: Verdict, now: Instant) -> None:
        lane, policy = job.lane, job.policy
        count_failure(lane.tally, outcome)
        match verdict:
            case RetryAt(at):
                self._record(lane, item, "retrying", now, outcome, policy)
                wait = min(max(0.0, (at - now) / SECOND), policy.retry.longest_wait)
                self._retry(lane, item, at, self._clock.monotonic() + wait, outcome.reason)
            case BecomeDeadLetter(reason):
                self._record(lane, item, "dead", now, outcome, policy)
                self._bury(lane, item, reason)
            case Park() | DisableLane():
                self._record(lane, item, "waiting", now, outcome, policy)
                if isinstance(verdict, Park):
                    item.tries = 0
                self._retry(lane, item, DUE, 0.0, outcome.reason)
            case Delivered():
                raise AssertionError("what was delivered has not failed")
            case _:
                assert_never(verdict)

    def show(self) -> None:
        """Bring the times of attempts to the board."""
        if any(self._buckets):
            self._board.observe_many("tidings_attempt_seconds", self._buckets, self._seconds)
            self._buckets, self._seconds = [0] * (len(BUCKETS) + 1), 0.0

    def set_aside(self, lane: PushLane, item: Item, fault: str) -> None:
        """The entry cannot be sent: record it as what it is."""
        if fault != EXPIRED:
            # It cannot be laid out at all: a dead letter without an attempt.
            self._record(lane, item, "dead", self._now(), Outcome(cause=fault), lane.policy)
            self._bury(lane, item, fault)
        elif self._close(lane, item):
            lane.tally.expired += 1
            self._record(lane, item, "expired", self._now(), Outcome(cause=EXPIRED), lane.policy)
            if item.again:
                self._ledger.released(lane, item.position)

    def begun_anew(self, lane: PushLane, begin: Mark) -> None:
        """The lane goes on from another place, where it begins now. Saved together, so a crash does it once."""
        if lane.state.rewind(begin):
            self._ledger.leaving(lane, None)
        lane.forget_read()
        self._ledger.touch(lane)

    def missed(self, lane: PushLane, count: int, after: Position, end: Position | None) -> None:
        """Retention removed entries of the lane after one place, and before `end` if one follows, before they were read.

        One record for all. The lane's state knows of them already and is saved together with this, so a crash counts them once.
        """
        lane.tally.expired += count
        cause = f"{EXPIRED} unread: {count} after {after.offset}" + ("" if end is None else f" and before {end.offset}")
        upto = last_place(after.partition) if end is None else place_before(end)
        record = Attempted(lane.number, place_after(after), "expired", 0, self._now(), None, None, cause, upto=upto)
        self._ledger.attempted(lane, record)

    def _bury(self, lane: PushLane, item: Item, reason: str) -> None:
        """The entry becomes a dead letter with its own copy of the event."""
        stored = item.parcel.stored if item.parcel is not None else None
        if not self._close(lane, item):
            return
        head, data = (b"", None) if stored is None else (stored.head, stored.data)
        lane.tally.dead += 1
        burial = Burial(lane.number, item.position, reason, item.tries, item.since, self._now(), head, data)
        self._ledger.buried(lane, burial)

    def _delivered(self, lane: PushLane, item: Item, outcome: Outcome, now: Instant, policy: Policy) -> None:
        self._close(lane, item)
        lane.tally.delivered += 1
        if item.tries == 1 and not item.again:
            lane.firsts.add(item.position, now, outcome.duration * 1000, outcome.status or 0)
            self._ledger.touch(lane)
            return
        self._record(lane, item, "delivered", now, outcome, policy)
        if item.again:
            self._ledger.released(lane, item.position)

    def _close(self, lane: PushLane, item: Item) -> bool:
        """The item is final."""
        closed = lane.state.close(item)
        if item.stage is CLOSING:
            self._announce(lane, item)
        return closed

    def _retry(self, lane: PushLane, item: Item, due: Instant, when: float, cause: str) -> None:
        """The item is tried again, unless it was taken away meanwhile."""
        lane.state.retry(item, due, when, cause)
        self._announce(lane, item)

    def _announce(self, lane: PushLane, item: Item) -> None:
        """In an ordered lane the next of the item's line, or the next batch, goes out when what came of it is durable."""
        if item.stage is CLOSING:
            self._ledger.leaving(lane, item)

    def _record(self, lane: PushLane, item: Item, state: str, now: Instant, outcome: Outcome, policy: Policy | None) -> None:
        if state in UNTRACKED and policy is not None and policy.tracking is not Tracking.ALL:
            # The lane's own state knows how it stands; only the way there is not kept.
            self._ledger.touch(lane)
            return
        cause = "" if state == "delivered" else outcome.reason
        took = outcome.duration * 1000 if outcome.duration else None
        target = "" if policy is None else target_of(policy.url)
        record = Attempted(lane.number, item.position, state, item.tries, now, outcome.status, took, cause, target)
        self._ledger.attempted(lane, record)


def _judged(job: Job, verdict: Verdict, now: Instant) -> Verdict:
    """The verdict in the light of the attempts before: an endpoint that only fails for too long is given up."""
    state = job.lane.state
    if isinstance(verdict, Delivered):
        state.failing_since = Instant(0)
    elif not state.failing_since:
        state.failing_since = now
    elif now - state.failing_since > job.policy.disable_after * SECOND:
        return DisableLane("failing")
    return verdict


def count_failure(tally: LaneTally, outcome: Outcome) -> None:
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
