"""What delivery shows of itself: lane state, deliveries, dead letters, results of commands. Readable from any process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from tidings.clock import Instant
from tidings.lanes.port import BEGIN, Mark
from tidings.log.position import LaneNumber, Position


class BreakerView(msgspec.Struct, frozen=True, kw_only=True):
    """A circuit breaker. `probe`: the status of the last probe, None when no answer came; `why`: its cause where it failed."""

    status: str
    origin: Position | None
    last_opened: Instant | None = None
    modified: Instant | None = None
    loops: int = 0
    postponed_until: Instant | None = None
    probed_at: Instant | None = None
    probe: int | None = None
    why: str = ""
    next_probe: Instant | None = None


class LaneDetail(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What keeps a lane from sending, or slows it down. `rate` is per second, None without a limit.

    `redelivering`: events that were asked for once more and are not final yet, those included that wait for room.
    """

    disabled: str = ""
    paused_until: Instant | None = None
    failing_since: Instant | None = None
    breaker: BreakerView | None = None
    mode: str = "normal"
    rate: float | None = None
    redelivering: int = 0


class DeliveryCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Counted since the lane exists, restarts included. `bytes`: of bodies that were delivered. Errors are of attempts.

    `replays`: rewinds, and orders to send something again.
    """

    dead: int = 0
    bytes: int = 0
    last_delivered: Instant | None = None
    timeouts: int = 0
    client_errors: int = 0
    server_errors: int = 0
    other_errors: int = 0
    replays: int = 0


class LaneView(msgspec.Struct, frozen=True, kw_only=True):
    """One lane as of its last save. `low_water`: everything at or before it is final (delivered, dead or expired).

    `dead_letters` are there now; `counts` is what was counted since the lane exists.
    """

    lane: LaneNumber
    state: str = "active"
    low_water: Mark = BEGIN
    open_items: int = 0
    delivered: int = 0
    failed_attempts: int = 0
    dead_letters: int = 0
    expired: int = 0
    last_error: str = ""
    next_due: Instant | None = None
    detail: LaneDetail = LaneDetail()
    counts: DeliveryCounts = DeliveryCounts()


class DeliveryRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A fact: one attempt, or an end without one. `state`: delivered, retrying, waiting, dead, expired, skipped.

    `upto`: it is about everything of the lane from its position to there.
    """

    number: int
    position: Position
    state: str
    tries: int
    at: Instant
    status: int | None = None
    duration_ms: float | None = None
    cause: str = ""
    target: str = ""
    upto: Position | None = None


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """An event that will not be tried again unless asked, with its own copy of the event."""

    number: int
    position: Position
    reason: str
    tries: int
    first_at: Instant
    last_at: Instant
    head: bytes
    data: bytes | None


class DeliveryReader(Protocol):
    """Reads what deliver workers have saved; cheap, never blocks them."""

    def lane(self, lane: LaneNumber) -> LaneView:
        """One lane; a lane that delivery has not touched yet is all defaults."""

    def lanes(self) -> Mapping[LaneNumber, LaneView]:
        """Every lane that delivery has touched."""

    def deliveries(self, lane: LaneNumber, before: int | None, limit: int) -> Sequence[DeliveryRecord]:
        """Newest first; `before` is the `number` to go on from."""

    def result(self, command_id: str) -> str | None:
        """None: not applied yet. "" : applied. Anything else: why it could not be applied."""


class DeadLetters(Protocol):
    """Reads the dead letters of lanes, as they were saved; cheap, never blocks deliver workers."""

    def dead_letters(self, lane: LaneNumber, after: int, limit: int) -> Sequence[DeadLetter]:
        """Oldest first; `after` is the `number` to go on from."""

    def last_dead_letters(self, lane: LaneNumber, limit: int) -> Sequence[DeadLetter]:
        """The newest dead letters, newest first."""

    def dead_letter(self, lane: LaneNumber, number: int) -> DeadLetter | None:
        """One dead letter of the lane; None when there is none of that number."""
