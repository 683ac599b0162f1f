"""Reads what one deliver worker has saved, from any process. No read transaction outlives its call."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tidings.clock import Instant
from tidings.delivery.push.lane.saved import decode
from tidings.delivery.push.reader import DeadLetter, DeliveryCounts, DeliveryRecord, LaneDetail, LaneView
from tidings.delivery.push.records.port import Buried, LaneStanding, RecordsKept
from tidings.delivery.push.sqlite import facts
from tidings.delivery.push.sqlite.schema import DELIVERY, NUMBER_BITS
from tidings.errors import LogUnavailable
from tidings.lanes.port import Mark
from tidings.log.position import LaneNumber, Offset, Partition, Position
from tidings.sqlite.files import open_reader, translating

ANY = (0, 1 << 62)
_LETTER = 'number, partition, "offset", reason, tries, first_at, last_at, head'
_detail = msgspec.json.Decoder(LaneDetail).decode


class OneFile:
    """Reads the file of one worker. Numbers are made distinct from those of other files. Safe to share between threads."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.base = int(path.stem.partition("-")[2]) << NUMBER_BITS
        self._db: sqlite3.Connection | None = None
        self._lock = threading.Lock()

    def view(self, lane: LaneNumber) -> tuple[int, LaneView] | None:
        """When the lane was saved here, and as what; None when it never was."""
        return next(self._views("WHERE l.lane = ?", lane), None)

    def views(self) -> Iterator[tuple[int, LaneView]]:
        return self._views("")

    def deliveries(self, lane: LaneNumber, before: int | None, limit: int) -> Sequence[DeliveryRecord]:
        below = min(before - self.base if before is not None else 1 << 62, 1 << NUMBER_BITS)
        records = [*facts.attempts_before(self.rows, self.base, lane, below, limit), *self._packed(lane, below, limit)]
        records.sort(key=lambda record: record.number, reverse=True)
        return records[:limit]

    def dead_letters(self, lane: LaneNumber, after: int, limit: int) -> Sequence[DeadLetter]:
        found = f"SELECT {_LETTER}, data FROM dead_letters WHERE lane = ? AND raised = 0 AND number > ? ORDER BY number LIMIT ?"
        return [self._letter(*row) for row in self.rows(found, (lane, after - self.base, limit))]

    def last_dead_letters(self, lane: LaneNumber, limit: int) -> Sequence[DeadLetter]:
        found = f"SELECT {_LETTER}, data FROM dead_letters WHERE lane = ? AND raised = 0 ORDER BY number DESC LIMIT ?"
        return [self._letter(*row) for row in self.rows(found, (lane, limit))]

    def burials(self, after: int, limit: int) -> list[Buried]:
        """Dead letters of any lane after a number of this file, raised ones too: they were buried all the same."""
        found = f"SELECT lane, origin, {_LETTER}, NULL FROM dead_letters WHERE number > ? ORDER BY number LIMIT ?"
        return [Buried(lane, origin, self._letter(*row)) for lane, origin, *row in self.rows(found, (after, limit))]

    def standing(self, lane: LaneNumber) -> tuple[int, LaneStanding] | None:
        """When the lane was saved here, and its state; None when it never was."""
        # One statement, so that the lane and its items are of one save.
        rows = self.rows(
            "SELECT saved_at, state, lanes.body, items.body FROM lanes LEFT JOIN items USING (lane) WHERE lane = ?",
            (lane,),
        )
        if not rows:
            return None
        at, word, body, _ = rows[0]
        return at, LaneStanding(word, decode(body, (item for *_, item in rows if item is not None)))

    def kept(self) -> RecordsKept:
        return next(
            (RecordsKept(Instant(cut), taken) for cut, taken in self.rows("SELECT cut, bytes FROM numbers", ())), RecordsKept()
        )

    def _letter(self, number: int, partition: int, offset: int, *rest: Any) -> DeadLetter:
        reason, tries, first_at, last_at, head, data = rest
        return DeadLetter(
            number=self.base + number,
            position=_position(partition, offset),
            reason=reason,
            tries=tries,
            first_at=first_at,
            last_at=last_at,
            head=head,
            data=data,
        )

    def result(self, command_id: str) -> str | None:
        rows = self.rows("SELECT result FROM applied WHERE id = ?", (command_id,))
        return str(rows[0][0]) if rows else None

    def close(self) -> None:
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None

    def _views(self, where: str, *values: int) -> Iterator[tuple[int, LaneView]]:
        rows = self.rows(
            "SELECT l.lane, l.state, l.low_number, l.low_partition, l.low_water, l.open_items, l.next_due, "
            "l.delivered, l.failed_attempts, "
            "l.expired, l.last_error, l.detail, l.counted, l.saved_at, "
            f"(SELECT count(*) FROM dead_letters d WHERE d.lane = l.lane AND d.raised = 0) FROM lanes l {where}",
            values,
        )
        for lane, state, number, partition, low, open_items, due, *counts, error, detail, counted, saved_at, dead in rows:
            delivered, failed, expired = counts
            yield (
                saved_at,
                LaneView(
                    lane=LaneNumber(lane),
                    state=state,
                    low_water=Mark(number, Position(partition, low)),
                    open_items=open_items,
                    delivered=delivered,
                    failed_attempts=failed,
                    dead_letters=dead,
                    expired=expired,
                    last_error=error,
                    next_due=None if due is None else Instant(due),
                    detail=_detail(detail),
                    counts=_counts(counted),
                ),
            )

    def _packed(self, lane: LaneNumber, below: int, limit: int) -> Iterator[DeliveryRecord]:
        """The newest first-try successes below a number; rows are unpacked until there are enough."""
        found = 0
        while found < limit:
            rows = self.rows(
                "SELECT first, partition, target, offsets, at, milliseconds, status FROM firsts "
                "WHERE lane = ? AND first < ? ORDER BY first DESC LIMIT 1",
                (lane, below),
            )
            if not rows:
                return
            first, partition, target, *packed = rows[0]
            records = list(facts.unpacked(first, partition, packed, target, self.base, ANY))
            for record in reversed(records[: below - first]):
                yield record
                found += 1
            below = first

    def rows(self, query: str, values: Sequence[object]) -> list[Any]:
        with self._lock, translating(self._path):
            if self._db is None:
                try:
                    self._db = open_reader(self._path, DELIVERY)
                except LogUnavailable:
                    return []
            return self._db.execute(query, values).fetchall()


def _counts(counted: bytes) -> DeliveryCounts:
    dead, size, last, *rest = msgspec.msgpack.decode(counted)
    names = ("timeouts", "client_errors", "server_errors", "other_errors", "replays")
    return DeliveryCounts(dead=dead, bytes=size, last_delivered=last or None, **dict(zip(names, rest, strict=True)))


def _position(partition: int, offset: int) -> Position:
    return Position(Partition(partition), Offset(offset))
