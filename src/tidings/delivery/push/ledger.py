"""What happened since the last save, gathered lane by lane into flushes.

Ordered lanes wait for their saves, so these come at once, back to back, and hold only such lanes. The rest, such as the retries of
bad endpoints, is saved once an interval, some lanes at a time: ordered lanes never wait for more than a slice of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from tidings.clock import Instant
from tidings.delivery.push.lane.entries import Item
from tidings.delivery.push.lane.push_lane import PushLane
from tidings.delivery.push.records.causes import target_of
from tidings.delivery.push.store import AppliedCommand, Attempted, Burial, Firsts, Flush
from tidings.log.position import LaneNumber, Marks, Position

SLICE_ROWS = 250
"""Rows of one flush, about, when nobody waits for it; one lane's are never divided."""

MOST_UNSAVED = 50_000
"""Records that may wait for a save; beyond that no new attempts begin until they are saved."""

MOST_COPIED = 64 << 20
"""The same for bytes of dead letters: each holds its own copy of an event."""


class Notes:
    """What happened in one lane since it was last saved."""

    __slots__ = ("attempts", "burials", "lane", "leaving", "raised", "recalled", "released")

    def __init__(self, lane: PushLane) -> None:
        self.lane = lane
        self.attempts: list[Attempted] = []
        self.burials: list[Burial] = []
        self.raised: list[Position] = []
        self.recalled = False
        self.released: list[Position] = []
        self.leaving: list[Item | None] = []

    @property
    def rows(self) -> int:
        """About how many rows they take."""
        state = self.lane.state
        return 1 + len(self.attempts) + len(self.burials) + len(state.changed) + len(state.removed)


class Ledger:
    """Gathers, lane by lane. Everything here is lost in a crash, and then happens again."""

    def __init__(self) -> None:
        self.wanted = asyncio.Event()
        self.urgent = asyncio.Event()
        self._notes: dict[LaneNumber, Notes] = {}
        self._urgent: dict[LaneNumber, None] = {}
        self._attempts = self._copied = 0
        self._applied: list[AppliedCommand] = []
        self._commands: Marks | None = None
        self._commanded: dict[LaneNumber, None] = {}
        self._being_saved: list[Notes] = []
        self.open_items = 0

    @property
    def full(self) -> bool:
        return self._attempts >= MOST_UNSAVED or self._copied >= MOST_COPIED

    def touch(self, lane: PushLane) -> None:
        """The lane's state changed."""
        if lane.number not in self._notes:
            self._notes[lane.number] = Notes(lane)
            self.wanted.set()

    def attempted(self, lane: PushLane, record: Attempted) -> None:
        self._of(lane).attempts.append(record)
        self._attempts += 1

    def buried(self, lane: PushLane, burial: Burial) -> None:
        self._of(lane).burials.append(burial)
        self._copied += _copied_in(burial)

    def raised(self, lane: PushLane, position: Position) -> None:
        """A dead letter is sent again: hidden, its copy kept."""
        self._of(lane).raised.append(position)

    def recalled(self, lane: PushLane) -> None:
        """All dead letters of the lane are to be sent again; those that are not raised wait for their turn."""
        self._of(lane).recalled = True

    def released(self, lane: PushLane, position: Position) -> None:
        """A dead letter and its copy are no longer needed."""
        self._of(lane).released.append(position)

    def leaving(self, lane: PushLane, item: Item | None) -> None:
        """An item of an ordered lane is final (None: a barrier). Others wait for that to be saved, so it is saved at once."""
        self._of(lane).leaving.append(item)
        self._urgent[lane.number] = None
        self.urgent.set()

    def saved(self) -> Iterable[tuple[PushLane, Sequence[Item | None]]]:
        """What was collected last is durable: what closed in each lane by it."""
        saved, self._being_saved = self._being_saved, []
        return [(notes.lane, notes.leaving) for notes in saved if notes.leaving]

    def commanded(self, lane: PushLane) -> None:
        """A command changed the lane: it is saved together with the command."""
        self.touch(lane)
        self._commanded[lane.number] = None

    def applied(self, command: AppliedCommand) -> None:
        self._applied.append(command)
        self._soon()

    def commands_read(self, upto: Marks) -> None:
        self._commands = upto
        self._soon()

    def is_applied(self, command_id: str) -> bool:
        return any(applied.id == command_id for applied in self._applied)

    def waits_for(self, lane: PushLane) -> bool:
        """Whether something of the lane is yet to be saved, or is being saved."""
        return lane.number in self._notes or any(notes.lane is lane for notes in self._being_saved)

    def pending(self) -> list[LaneNumber]:
        """The lanes with something to save."""
        return list(self._notes)

    def collect_urgent(self, at: Instant) -> Flush | None:
        """The lanes in which somebody waits for the save, and commands with the lanes that they changed. None: there are none."""
        keys = {**self._urgent, **self._commanded}
        applied, commands = self._applied, self._commands
        self._urgent, self._commanded, self._applied, self._commands = {}, {}, [], None
        self.urgent.clear()
        if not keys and not applied and commands is None:
            return None
        return self._flush([self._notes.pop(key) for key in keys if key in self._notes], applied, commands, at)

    def collect(self, keys: list[LaneNumber], at: Instant) -> Flush | None:
        """A slice of these lanes, which are taken from the list. None: none of them has anything to save."""
        chosen: list[Notes] = []
        rows = 0
        while keys and rows < SLICE_ROWS:
            key = keys.pop()
            # Saved with the urgent ones; not here, without the command that changed it.
            notes = self._notes.pop(key, None) if key not in self._commanded else None
            if notes is not None:
                self._urgent.pop(key, None)
                chosen.append(notes)
                rows += notes.rows
        return self._flush(chosen, [], None, at) if chosen else None

    def _soon(self) -> None:
        self.wanted.set()
        self.urgent.set()

    def _of(self, lane: PushLane) -> Notes:
        self.touch(lane)
        return self._notes[lane.number]

    def _flush(self, notes: Sequence[Notes], applied: Sequence[AppliedCommand], commands: Marks | None, at: Instant) -> Flush:
        if not self._notes and not self._applied and self._commands is None:
            self.wanted.clear()
        self._being_saved += notes
        flush = Flush(
            lanes=[one.lane.saved() for one in notes],
            firsts={one.lane.number: _firsts_of(one.lane) for one in notes if one.lane.firsts.positions},
            attempts=[attempt for one in notes for attempt in one.attempts],
            burials=[burial for one in notes for burial in one.burials],
            raised=[(one.lane.number, position) for one in notes for position in one.raised],
            recalled=[one.lane.number for one in notes if one.recalled],
            released=[(one.lane.number, position) for one in notes for position in one.released],
            applied=applied,
            commands=commands,
            at=at,
        )
        self._attempts -= len(flush.attempts)
        self._copied -= sum(map(_copied_in, flush.burials))
        for lane in (one.lane for one in notes):
            # What a deleted lane has open is never sent: it must not count against the others.
            size = 0 if lane.deleted else lane.state.size
            self.open_items += size - lane.counted
            lane.counted = size
        return flush


def _copied_in(burial: Burial) -> int:
    return len(burial.head) + len(burial.data or b"")


def _firsts_of(lane: PushLane) -> Firsts:
    firsts, lane.firsts = lane.firsts, Firsts()
    if lane.policy is not None:
        firsts.target = target_of(lane.policy.url)
    return firsts
