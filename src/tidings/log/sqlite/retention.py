"""Retention: the oldest entries of a topic go, a small slice at a time, so that appends pass in between.

A topic loses a prefix: removing stops at the first entry that is young enough or not yet routed. A clock that was set
back therefore keeps entries longer, never shorter.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Sequence

from tidings.log.port import Retention
from tidings.log.position import Offset
from tidings.sqlite.files import transaction

SLICE_ROWS = 500
SLICE_BYTES = 2 << 20
_LOOKS = 64
_VACUUM_PAGES = 128
_SPARE_PAGES = 1024


class TopicSweep:
    """One walk over the retentions of all topics. Each step is one short transaction on the writer's thread."""

    def __init__(self, retentions: Sequence[Retention], routed: Offset) -> None:
        self._todo = deque(retentions)
        self._routed = routed
        self.gone = 0

    def step(self, connection: sqlite3.Connection) -> bool:
        """Remove at most one slice; whether there may be more to do."""
        for _ in range(min(_LOOKS, len(self._todo))):
            removed = _remove_slice(connection, self._todo[0], self._routed)
            if removed:
                self.gone += removed
                return True
            self._todo.popleft()
        return bool(self._todo) or give_back_pages(connection)


def _remove_slice(connection: sqlite3.Connection, retention: Retention, routed: Offset) -> int:
    upto, count = _slice(connection, retention, routed)
    if not count:
        return 0
    with transaction(connection):
        connection.execute('DELETE FROM entries WHERE topic = ? AND "offset" <= ?', (retention.topic, upto))
        connection.execute(
            "INSERT INTO removals VALUES (?, ?) ON CONFLICT (topic) DO UPDATE SET upto = max(upto, excluded.upto)",
            (retention.topic, upto),
        )
    return count


def _slice(connection: sqlite3.Connection, retention: Retention, routed: Offset) -> tuple[int, int]:
    """Up to where the next slice goes, and how many entries it has."""
    upto = count = size = 0
    rows = connection.execute(
        'SELECT "offset", at, size FROM entries WHERE topic = ? AND "offset" <= ? ORDER BY "offset" LIMIT ?',
        (retention.topic, routed, SLICE_ROWS),
    )
    for offset, at, bytes_ in rows:
        if at >= retention.before or size > SLICE_BYTES:
            break
        upto, count, size = offset, count + 1, size + bytes_
    rows.close()
    return upto, count


def give_back_pages(connection: sqlite3.Connection) -> bool:
    """Give some free pages back to the file system when much of the file is free; whether there is more.

    Appends use free pages again, so a file in its steady state is left as it is.
    """
    pages, free = connection.execute(
        "SELECT (SELECT page_count FROM pragma_page_count), (SELECT freelist_count FROM pragma_freelist_count)"
    ).fetchone()
    spare = max(_SPARE_PAGES, pages // 4)
    if free <= spare:
        return False
    # As a script: `execute` takes one step of this statement, which gives back one page (fetching does not help).
    connection.executescript(f"PRAGMA incremental_vacuum({min(_VACUUM_PAGES, free - spare)})")
    return True
