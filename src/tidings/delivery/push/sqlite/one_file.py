"""Reads what one deliver worker has saved, from any process. No read transaction outlives its call."""

from __future__ import annotations

import sqlite3
import threading
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tidings.clock import Instant
from tidings.delivery.push.port import DeadLetter, DeliveryRecord, LaneDetail, LaneView
from tidings.delivery.push.sqlite.schema import DELIVERY
from tidings.errors import LogUnavailable
from tidings.log.position import LaneNumber, Offset, Partition, Position
from tidings.log.sqlite.files import open_reader, translating

NUMBER_BITS = 48
"""Bits of a record's number within its file."""

_detail = msgspec.json.Decoder(LaneDetail).decode


class OneFile:
    """Reads the file of one worker. Numbers are made distinct from those of other files. Safe to share between threads."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._base = int(path.stem.partition("-")[2]) << NUMBER_BITS
        self._db: sqlite3.Connection | None = None
        self._lock = threading.Lock()

    def view(self, lane: LaneNumber) -> tuple[int, LaneView] | None:
        """When the lane was saved here, and as what; None when it never was."""
        return next(self._views("WHERE l.lane = ?", lane), None)

    def views(self) -> Iterator[tuple[int, LaneView]]:
        return self._views("")

    def deliveries(self, lane: LaneNumber, before: int | None, limit: int) -> Sequence[DeliveryRecord]:
        below = min(before - self._base if before is not None else 1 << 62, 1 << NUMBER_BITS)
        records = [*self._singles(lane, below, limit), *self._packed(lane, below, limit)]
        records.sort(key=lambda record: record.number, reverse=True)
        return records[:limit]

    def dead_letters(self, lane: LaneNumber, after: int, limit: int) -> Sequence[DeadLetter]:
        rows = self._rows(
            'SELECT number, partition, "offset", reason, tries, first_at, last_at, head, data FROM dead_letters '
            "WHERE lane = ? AND raised = 0 AND number > ? ORDER BY number LIMIT ?",
            (lane, after - self._base, limit),
        )
        return [
            DeadLetter(
                number=self._base + number,
                position=_position(partition, offset),
                reason=reason,
                tries=tries,
                first_at=first_at,
                last_at=last_at,
                head=head,
                data=data,
            )
            for number, partition, offset, reason, tries, first_at, last_at, head, data in rows
        ]

    def result(self, command_id: str) -> str | None:
        rows = self._rows("SELECT result FROM applied WHERE id = ?", (command_id,))
        return str(rows[0][0]) if rows else None

    def close(self) -> None:
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None

    def _views(self, where: str, *values: int) -> Iterator[tuple[int, LaneView]]:
        rows = self._rows(
            "SELECT l.lane, l.state, l.low_water, l.open_items, l.next_due, l.delivered, l.failed_attempts, l.expired, "
            "l.last_error, l.detail, l.saved_at, "
            f"(SELECT count(*) FROM dead_letters d WHERE d.lane = l.lane AND d.raised = 0) FROM lanes l {where}",
            values,
        )
        for lane, state, low, open_items, due, delivered, failed, expired, error, detail, saved_at, dead in rows:
            yield (
                saved_at,
                LaneView(
                    lane=LaneNumber(lane),
                    state=state,
                    low_water=Offset(low),
                    open_items=open_items,
                    delivered=delivered,
                    failed_attempts=failed,
                    dead_letters=dead,
                    expired=expired,
                    last_error=error,
                    next_due=None if due is None else Instant(due),
                    detail=_detail(detail) if detail else LaneDetail(),
                ),
            )

    def _singles(self, lane: LaneNumber, below: int, limit: int) -> Iterator[DeliveryRecord]:
        rows = self._rows(
            'SELECT number, partition, "offset", state, tries, at, status, milliseconds, cause FROM attempts '
            "WHERE lane = ? AND number < ? ORDER BY number DESC LIMIT ?",
            (lane, below, limit),
        )
        for number, partition, offset, state, tries, at, status, milliseconds, cause in rows:
            yield DeliveryRecord(
                number=self._base + number,
                position=_position(partition, offset),
                state=state,
                tries=tries,
                at=at,
                status=status,
                duration_ms=milliseconds,
                cause=cause,
            )

    def _packed(self, lane: LaneNumber, below: int, limit: int) -> Iterator[DeliveryRecord]:
        """The newest first-try successes below a number; rows are unpacked until there are enough."""
        found = 0
        while found < limit:
            rows = self._rows(
                "SELECT first, partition, count, offsets, at, milliseconds, status FROM firsts "
                "WHERE lane = ? AND first < ? ORDER BY first DESC LIMIT 1",
                (lane, below),
            )
            if not rows:
                return
            for record in _unpacked(rows[0], below, self._base):
                yield record
                found += 1
            below = rows[0][0]

    def _rows(self, query: str, values: Sequence[object]) -> list[Any]:
        with self._lock, translating(self._path):
            if self._db is None:
                try:
                    self._db = open_reader(self._path, DELIVERY)
                except LogUnavailable:
                    return []
            return self._db.execute(query, values).fetchall()


def _unpacked(row: Sequence[Any], below: int, base: int) -> Iterator[DeliveryRecord]:
    first, partition, count, *packed = row
    offsets, at, milliseconds, status = (array(kind, column) for kind, column in zip("qqfH", packed, strict=True))
    for n in range(min(count, below - first) - 1, -1, -1):
        yield DeliveryRecord(
            number=base + first + n,
            position=_position(partition, offsets[n]),
            state="delivered",
            tries=1,
            at=Instant(at[n]),
            status=status[n],
            duration_ms=round(milliseconds[n], 3),
        )


def _position(partition: int, offset: int) -> Position:
    return Position(Partition(partition), Offset(offset))
