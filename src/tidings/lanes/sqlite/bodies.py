"""Projected bodies in lanes.db: each goes when its entry has gone from the log, whatever other topics keep.

Bodies lie in the order of the log and do not know their topic: an index over it would cost every write. What topics have lost
since the last sweep are a few spans of offsets, so a sweep looks at the bodies in these and asks the log which entries remain.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple, TypeAlias

import msgspec

from tidings.log.port import Remains
from tidings.log.position import COMMANDS, START, Offset, Partition, TopicNumber
from tidings.log.sqlite.retention import SLICE_BYTES, SLICE_ROWS

Lost: TypeAlias = Mapping[tuple[TopicNumber, Partition], Offset]
"""Up to where the entries of a topic may have been removed."""

_NEXT = """SELECT "offset", total(length(data)) FROM bodies WHERE partition = ? AND "offset" > ? AND "offset" <= ?
           GROUP BY "offset" ORDER BY "offset" LIMIT ?"""
_REMOVE = 'DELETE FROM bodies WHERE partition = ? AND "offset" IN (SELECT value FROM json_each(?))'


class OffsetSpan(NamedTuple):
    """The offsets of one partition after `after` and at or below `upto`."""

    partition: Partition
    after: Offset
    upto: Offset


def lost_of(log: Remains) -> Lost:
    """What every topic of the log has lost by now."""
    marks = {topic: marks for topic, marks in log.removals().items() if topic != COMMANDS}
    return {(topic, partition): offset for topic, offsets in marks.items() for partition, offset in offsets.items()}


def lost_since(before: Lost, now: Lost) -> list[OffsetSpan]:
    """Where entries have gone since, in order, without overlaps: topics that are kept equally long lose the same span."""
    moved = [OffsetSpan(key[1], before.get(key, START), upto) for key, upto in now.items() if upto > before.get(key, START)]
    spans: list[OffsetSpan] = []
    for span in sorted(moved):
        if spans and spans[-1].partition == span.partition and span.after <= spans[-1].upto:
            span = OffsetSpan(span.partition, spans[-1].after, max(span.upto, spans.pop().upto))
        spans.append(span)
    return spans


def next_offsets(connection: sqlite3.Connection, span: OffsetSpan) -> list[Offset]:
    """The next offsets of the span that have bodies: one slice, which is one body at the least."""
    rows = connection.execute(_NEXT, (*span, SLICE_ROWS)).fetchall()
    fitting = sum(size <= SLICE_BYTES for size in accumulate(row[1] for row in rows))
    return [row[0] for row in rows[: max(1, fitting)]]


def remove_at(connection: sqlite3.Connection, partition: Partition, offsets: Sequence[Offset]) -> int:
    """Remove all bodies at these offsets; how many there were. Durable when it returns."""
    return connection.execute(_REMOVE, (partition, msgspec.json.encode(offsets).decode())).rowcount


def swept(connection: sqlite3.Connection) -> Lost:
    """What topics had lost when the last sweep began that came to its end."""
    rows = connection.execute("SELECT topic, partition, upto FROM swept")
    return {(topic, partition): upto for topic, partition, upto in rows}


def note_swept(connection: sqlite3.Connection, lost: Lost) -> None:
    """All bodies of what was lost up to there are gone."""
    connection.execute(
        "INSERT OR REPLACE INTO swept SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?)",
        (msgspec.json.encode([(*key, upto) for key, upto in lost.items()]).decode(),),
    )
