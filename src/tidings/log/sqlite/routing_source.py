"""The embedded log for routing: one partition, read by workers from log.db itself."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from tidings.log.port import Limit
from tidings.log.position import EMBEDDED, START, Marks, Offset, Partition, embedded
from tidings.log.ranges import Columns, Range
from tidings.log.sqlite.entries import log_file
from tidings.log.sqlite.identity import damage_of
from tidings.log.sqlite.reader import SqliteLogReader
from tidings.log.wake import WakeListener

ALONE = 4000
"""A range of no more entries than this is one task: below it, a second one costs more than it saves."""

_readers: dict[Path, SqliteLogReader] = {}
"""The readers of this process: a worker has many tasks, one after the other."""


class SqliteRangeReader:
    """`RangeReader` on log.db."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._wake: WakeListener | None = None

    def pages(self, wanted: Range, limit: Limit) -> Iterator[Columns]:
        """See `RangeReader.pages`."""
        assert wanted.upto is not None
        at = wanted.after
        while at < wanted.upto:
            page = self._log().scan_columns(embedded(at), embedded(wanted.upto), limit)
            if not page.offsets:
                return
            at = Offset(page.offsets[-1])
            yield page

    def end(self, partition: Partition) -> Offset:
        """See `RangeReader.end`."""
        return self._log().ends().get(partition, START)

    def wait(self, partition: Partition, seconds: float) -> None:
        """See `RangeReader.wait`."""
        if self._wake is None:
            # It hears nothing of what came before, so this once nobody waits.
            self._wake = WakeListener(self._folder, "log")
            return
        self._wake.wait(seconds)

    def close(self) -> None:
        """See `RangeReader.close`."""
        if self._wake is not None:
            self._wake.close()
            self._wake = None

    def _log(self) -> SqliteLogReader:
        return _readers.get(self._folder) or _readers.setdefault(self._folder, SqliteLogReader(self._folder))

    def __getstate__(self) -> dict[str, Any]:
        return {"_folder": self._folder, "_wake": None}


class SqliteRoutingSource:
    """`RoutingSource` on log.db."""

    def __init__(self, folder: Path, log: SqliteLogReader) -> None:
        self._path = log_file(folder)
        self._log = log
        self.reader = SqliteRangeReader(folder)

    def ends(self) -> Marks:
        """See `RoutingSource.ends`."""
        return self._log.ends()

    def fault(self) -> str | None:
        """See `RoutingSource.fault`."""
        return damage_of(self._path)

    def count(self, after: Marks, upto: Marks) -> int:
        """See `RoutingSource.count`."""
        return self._log.count(after, upto)

    def ranges(self, after: Marks, limit: Limit, tasks: int) -> Sequence[Range]:
        """See `RoutingSource.ranges`."""
        begin = after.get(EMBEDDED, START)
        end = self._log.cut(after, Limit(entries=tasks * limit.entries, bytes=tasks * limit.bytes)).end
        return split(begin, end, tasks) if end > begin else ()

    def gone(self) -> Marks:
        """See `RoutingSource.gone`."""
        oldest = self._log.scan(embedded(0), self._log.ends(), Limit(entries=1)).entries
        return embedded(oldest[0].position.offset - 1) if oldest else self._log.ends()


def split(after: Offset, upto: Offset, tasks: int) -> Sequence[Range]:
    """The range (after, upto] in parts of about the same size, each for a task of its own."""
    parts = min(tasks, max(1, (upto - after) // ALONE))
    ends = [Offset(after + (upto - after) * part // parts) for part in range(parts + 1)]
    return list(itertools.starmap(lambda begin, end: Range(EMBEDDED, begin, end), pairwise(ends)))
