"""Lanes that are filled from the log, while routing goes on for all others.

    begun ──fill──▶ filling ──close to what is routed──▶ closing ──filled up to there──▶ done
                       ▲                                    │
                       └── the process ended, or too much was held back ──┘

What routing finds for a lane that is being filled is dropped: the filling comes to it later. While it is closing, it goes up to an
offset that stays, and what routing finds beyond is held back in memory and written together with the last of the filling.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from tidings.lanes.sink import Filling, LaneRun
from tidings.log.position import EMBEDDED, START, LaneNumber, Marks, Offset, embedded

FILLINGS = """CREATE TABLE fillings (
  lane INTEGER PRIMARY KEY, number INTEGER NOT NULL, after INTEGER NOT NULL, since INTEGER NOT NULL, reached INTEGER NOT NULL,
  done INTEGER NOT NULL)"""

CLOSE = 20_000
"""Offsets from which on a filling is close: what is routed while so many are filled fits into memory."""

HELD_BYTES = 8 << 20

_READ = "SELECT lane, number, after, since, reached, done FROM fillings"
_WRITE = "INSERT OR REPLACE INTO fillings VALUES (?,?,?,?,?,?)"


@dataclass(slots=True)
class HeldBack:
    """What routing found for one lane beyond the end of its filling."""

    upto: Offset
    blocks: list[LaneRun] = field(default_factory=list)
    bytes: int = 0


class Fillings:
    """The fillings of one writer of lanes: what the file says of them, and what is held back. Its caller has the lock."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._all = read(connection)
        self._held: dict[LaneNumber, HeldBack] = {}

    def all(self, routed: Marks) -> Mapping[LaneNumber, Filling]:
        """Every filling; `upto` says how far it may go now."""
        return {lane: msgspec.structs.replace(one, upto=self._upto(lane, routed)) for lane, one in self._all.items()}

    def _upto(self, lane: LaneNumber, routed: Marks) -> Marks:
        held = self._held.get(lane)
        return routed if held is None else embedded(held.upto)

    def keeps_back(self, lane: LaneNumber) -> bool:
        """Whether what routing finds for the lane is not for the file now."""
        found = self._all.get(lane)
        return found is not None and not found.done

    def hold(self, blocks: Iterable[LaneRun]) -> None:
        """These were routed, and are durable nowhere: keep them where the filling is closing, and not too many."""
        for block in blocks:
            held = self._held.get(block.lane)
            if held is not None:
                held.blocks.append(block)
                held.bytes += len(block.offsets) + len(block.keys or b"")
                if held.bytes > HELD_BYTES:
                    del self._held[block.lane]

    def fresh(self, begun: Iterable[Filling]) -> Sequence[Filling]:
        """Those that were not begun before."""
        return [one for one in begun if one.lane not in self._all or self._all[one.lane].number < one.number]

    def open(self, lanes: Iterable[LaneNumber]) -> Mapping[LaneNumber, Filling]:
        """The fillings of these lanes that are not done."""
        return {lane: self._all[lane] for lane in lanes if self.keeps_back(lane)}

    def stepped(self, filling: Filling, reached: Offset, routed: Offset) -> tuple[Filling, Offset | None]:
        """The filling when it has come so far, and where it is to end, if it is close to that."""
        held, since = self._held.get(filling.lane), filling.since.get(EMBEDDED, START)
        reached = max(reached, filling.reached.get(EMBEDDED, START))
        end = held.upto if held else routed if routed >= since and routed - reached <= CLOSE else None
        done = end is not None and reached >= end
        return msgspec.structs.replace(filling, reached=embedded(reached), done=done), end

    def held(self, lane: LaneNumber) -> Sequence[LaneRun]:
        """What was held back of a lane, in order."""
        return self._held[lane].blocks if lane in self._held else ()

    def committed(self, changed: Iterable[tuple[Filling, Offset | None]]) -> None:
        """These stand in the file now."""
        for filling, end in changed:
            self._all[filling.lane] = filling
            if filling.done or end is None:
                self._held.pop(filling.lane, None)
            else:
                self._held.setdefault(filling.lane, HeldBack(end))


def read(connection: sqlite3.Connection) -> dict[LaneNumber, Filling]:
    """Every filling that the file knows."""
    return {row[0]: _filling(*row) for row in connection.execute(_READ)}


def store(connection: sqlite3.Connection, fillings: Iterable[Filling]) -> None:
    """Write them, inside the caller's transaction."""
    connection.executemany(_WRITE, list(map(_row, fillings)))


def _filling(lane: LaneNumber, number: int, after: Offset, since: Offset, reached: Offset, done: int) -> Filling:
    return Filling(
        lane=lane, number=number, after=embedded(after), since=embedded(since), reached=embedded(reached), done=bool(done)
    )


def _row(one: Filling) -> tuple[int, ...]:
    marks = (one.after, one.since, one.reached)
    return (one.lane, one.number, *(mark.get(EMBEDDED, START) for mark in marks), one.done)
