"""The port of delivery's own store: what one deliver worker saves, and in which bundles."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Protocol

import msgspec

from tidings.clock import Instant
from tidings.delivery.push.reader import LaneDetail
from tidings.lanes.port import Mark
from tidings.log.position import LaneNumber, Marks, Position


class LaneTally(msgspec.Struct, gc=False):
    """What was counted for one lane since it exists. `bytes`: of bodies that were delivered; a batch counts once.

    `replays`: rewinds, and orders to send something again.
    """

    delivered: int = 0
    failed_attempts: int = 0
    expired: int = 0
    last_error: str = ""
    dead: int = 0
    bytes: int = 0
    last_delivered: Instant = Instant(0)
    timeouts: int = 0
    client_errors: int = 0
    server_errors: int = 0
    other_errors: int = 0
    replays: int = 0


class SavedLane(msgspec.Struct, frozen=True, kw_only=True):
    """One lane's state as it is saved: `body` and `items` in the state's own form (lane/saved.py), the rest is for readers.

    To be saved, `items` are the rows that changed, by number, and `removed` those that are to go; loaded, `items` are all.
    `low_water`: everything at or before it is final.
    """

    lane: LaneNumber
    state: str
    body: bytes
    low_water: Mark
    open_items: int
    next_due: Instant | None
    tally: LaneTally
    detail: LaneDetail = LaneDetail()
    items: Sequence[tuple[int, bytes]] = ()
    removed: Sequence[int] = ()

    @property
    def rows(self) -> int:
        """About how many rows it takes."""
        return 1 + len(self.items) + len(self.removed)


class Firsts:
    """First-try successes of one lane since the last save, packed in columns. `target`: where they went, without secrets."""

    __slots__ = ("at", "milliseconds", "positions", "status", "target")

    def __init__(self) -> None:
        self.target = ""
        self.positions: list[Position] = []
        self.at = array("q")
        self.milliseconds = array("f")
        self.status = array("H")

    def add(self, position: Position, at: int, milliseconds: float, status: int) -> None:
        self.positions.append(position)
        self.at.append(at)
        self.milliseconds.append(milliseconds)
        self.status.append(status)


class Attempted(msgspec.Struct, frozen=True, gc=False):
    """One record of everything that is no first-try success. `state`: delivered, retrying, waiting, dead, expired, skipped.

    `upto`: the record is about everything of the lane from `position` to there.
    """

    lane: LaneNumber
    position: Position
    state: str
    tries: int
    at: Instant
    status: int | None
    milliseconds: float | None
    cause: str
    target: str = ""
    upto: Position | None = None


class Burial(msgspec.Struct, frozen=True, gc=False):
    """A new dead letter with its own copy of the event."""

    lane: LaneNumber
    position: Position
    reason: str
    tries: int
    first_at: Instant
    last_at: Instant
    head: bytes
    data: bytes | None


class Stage(IntEnum):
    """What is to become of a dead letter: it lies there, is being sent again, or was asked for and waits for its turn.

    What is sent again is hidden, its copy kept, until it is delivered or buried anew.
    """

    LYING = 0
    RAISED = 1
    WAITING = 2


class AppliedCommand(msgspec.Struct, frozen=True, gc=False):
    """A command that was applied, or why it could not be."""

    id: str
    at: Instant
    result: str


class Flush(msgspec.Struct, frozen=True, kw_only=True):
    """What is saved together, in one transaction: effects and the states that know of them.

    `raised` are dead letters that are being sent again. In the lanes `recalled` all others that lie there wait for their turn.
    """

    lanes: Sequence[SavedLane] = ()
    firsts: Mapping[LaneNumber, Firsts] = {}
    attempts: Sequence[Attempted] = ()
    burials: Sequence[Burial] = ()
    raised: Sequence[tuple[LaneNumber, Position]] = ()
    recalled: Sequence[LaneNumber] = ()
    released: Sequence[tuple[LaneNumber, Position]] = ()
    applied: Sequence[AppliedCommand] = ()
    commands: Marks | None = None
    at: Instant = Instant(0)


class Loaded(msgspec.Struct, frozen=True):
    """What was saved before, read once at the start."""

    lanes: Mapping[LaneNumber, SavedLane]
    commands: Marks


class DeliveryStore(Protocol):
    """Where one deliver worker keeps its state. One owner; calls come one at a time."""

    def load(self) -> Loaded:
        """Everything the worker needs to go on."""

    def save(self, flush: Flush) -> None:
        """Save all of it or none; durable when it returns. Raises LogUnavailable; the same flush may then be saved again."""

    def buried(self, lane: LaneNumber, positions: Sequence[Position] | None) -> Mapping[Position, Burial]:
        """Dead letters of a lane, whole (None: all that are not raised; else these, raised ones too). As of the last save."""

    def letters(self, lane: LaneNumber, stages: Sequence[Stage] = tuple(Stage), limit: int = -1) -> Sequence[Position]:
        """Where the dead letters of a lane are, oldest event first, at most `limit` of them. As of the last save; cheap."""

    def result(self, command_id: str) -> str | None:
        """The result of a command that was applied, as of the last save."""

    def trim(self, before: Instant) -> int:
        """Remove records, dead letters, results and states of deleted lanes older than `before`: a bounded slice; how many."""

    def close(self) -> None:
        """Release the files. Safe to call twice."""
