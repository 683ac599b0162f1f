"""Where rows come from: the embedded log as a Spark data source, for streams and for single ranges.

A row is one entry. Every input partition ends with a marker row (topic -1, `offset` = how far it read, `at` = after what it
began). Routing asks for these rows alone and reads the entries in its own workers (docs/decisions/007-ranges.md); a marker of an
empty range keeps the workers warm.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import BinaryType, IntegerType, LongType, StructField, StructType

from tidings.log.port import Limit
from tidings.log.position import embedded
from tidings.log.sqlite.reader import Columns, SqliteLogReader
from tidings.log.wake import Listener
from tidings.pipeline.workers import settle_once

FORMAT = "tidings-log"
MARKER = -1

ENTRY_SCHEMA = StructType(
    [
        StructField("offset", LongType()),
        StructField("topic", IntegerType()),
        StructField("at", LongType()),
        StructField("head", BinaryType()),
        StructField("data", BinaryType()),
    ]
)
_ARROW = pa.schema(
    [("offset", pa.int64()), ("topic", pa.int32()), ("at", pa.int64()), ("head", pa.binary()), ("data", pa.binary())]
)

_READ = Limit(entries=5000, bytes=8 << 20)
_ALONE = 4000
"""A batch of no more entries than this is one task: below it, a second one costs more than it saves."""
TASKS = 4
"""Tasks of one batch at the most."""


class LogSource(DataSource):
    """`spark.readStream.format("tidings-log")` follows the log; `spark.read` with `after` and `upto` reads one range.

    Options: `data` (the data folder), `after` (where a stream begins), `events`, `bytes` (limits of a task), `warm` (seconds),
    `rows`: `entries`, or `ranges` for the closing rows alone, when whoever takes them reads the entries by itself.
    """

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return ENTRY_SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        return RangeReader(dict(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return FollowingReader(dict(self.options))


class RangeReader(DataSourceReader):
    """Reads one range, once."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        return _split(int(self._options["after"]), int(self._options["upto"]))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self._options, *partition.value)


class FollowingReader(DataSourceStreamReader):
    """Follows the log. Spark's offsets are `{"offset": n, "tick": k}`; a tick alone makes a batch that only keeps workers warm."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = options
        self._data = Path(options["data"])
        self._after = int(options["after"])
        self._limit = Limit(entries=TASKS * int(options["events"]), bytes=TASKS * int(options["bytes"]))
        self._warm = float(options["warm"])
        self._log: SqliteLogReader | None = None
        self._wake: Listener | None = None

    def initialOffset(self) -> dict[str, int]:
        return {"offset": self._after, "tick": 0}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:
        """Waits for the next append instead of returning at once: that saves latency and idle CPU alike."""
        log, wake = self._opened()
        give_up = time.monotonic() + self._warm
        while True:
            end = log.cut(embedded(start["offset"]), self._limit).end
            if end > start["offset"] or not start["tick"]:
                # The first batch comes at once, also an empty one: it starts the workers before anybody waits for them.
                return {"offset": end, "tick": start["tick"] or 1}
            left = give_up - time.monotonic()
            if left <= 0:
                return {"offset": start["offset"], "tick": start["tick"] + 1}
            wake.wait(min(left, 1.0))

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return _split(start["offset"], end["offset"])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self._options, *partition.value)

    def stop(self) -> None:
        if self._wake is not None:
            self._wake.close()

    def _opened(self) -> tuple[SqliteLogReader, Listener]:
        # Opened here and not in __init__: Spark pickles the reader to the workers, which need neither.
        if self._log is None or self._wake is None:
            self._wake = Listener(self._data, "log")
            self._log = SqliteLogReader(self._data)
        return self._log, self._wake

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_log": None, "_wake": None}


def _split(after: int, upto: int) -> Sequence[InputPartition]:
    """The range (after, upto], in parts of about the same size that are tasks of their own."""
    tasks = min(TASKS, max(1, (upto - after) // _ALONE))
    ends = [after + (upto - after) * task // tasks for task in range(tasks + 1)]
    return [InputPartition(part) for part in pairwise(ends)]


def _read(options: Mapping[str, str], after: int, upto: int) -> Iterator[pa.RecordBatch]:
    settle_once()
    if options.get("rows", "entries") == "entries":
        yield from map(_as_arrow, pages(Path(options["data"]), after, upto))
    yield pa.record_batch([[upto], [MARKER], [after], [None], [None]], schema=_ARROW)


def ranges_in(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, int]]:
    """The ranges (after, upto] that are closed in these batches."""
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in ("topic", "at", "offset"))
        yield from ((after, upto) for topic, after, upto in zip(*columns, strict=True) if topic == MARKER)


_readers: dict[Path, SqliteLogReader] = {}


def pages(data: Path, after: int, upto: int) -> Iterator[Columns]:
    """The entries in (after, upto], a bounded number at a time. The reader stays open for the next range."""
    log = _readers.get(data) or _readers.setdefault(data, SqliteLogReader(data))
    at = after
    while at < upto:
        page = log.scan_columns(embedded(at), embedded(upto), _READ)
        if not page.offsets:
            return
        at = page.offsets[-1]
        yield page


def _as_arrow(page: Columns) -> pa.RecordBatch:
    columns = (page.offsets, page.topics, page.ats, page.heads, page.datas)
    return pa.record_batch([pa.array(column, field.type) for column, field in zip(columns, _ARROW, strict=True)], schema=_ARROW)
