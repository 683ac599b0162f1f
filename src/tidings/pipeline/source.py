"""Where rows come from: the embedded log as a Spark data source, for streams and for single ranges.

A row is one entry. Every input partition ends with a marker row (topic -1, `offset` = how far it read, `at` = after what it
began), so that the stage learns how far was scanned even when nothing matched, and so that a marker alone keeps workers warm.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import BinaryType, IntegerType, LongType, StructField, StructType

from tidings.log.port import Limit
from tidings.log.position import embedded
from tidings.log.sqlite.reader import SqliteLogReader
from tidings.log.wake import Listener

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
_SPLIT_ABOVE = 4000
"""A batch with more entries than this is read by two tasks at once; below it, a second task costs more than it saves."""


class LogSource(DataSource):
    """`spark.readStream.format("tidings-log")` follows the log; `spark.read` with `after` and `upto` reads one range.

    Options: `data` (the data folder), `after` (where a stream begins), `events`, `bytes` (limits of a batch), `warm` (seconds).
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
        return [InputPartition((int(self._options["after"]), int(self._options["upto"])))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return entries(Path(self._options["data"]), *partition.value)


class FollowingReader(DataSourceStreamReader):
    """Follows the log. Spark's offsets are `{"offset": n, "tick": k}`; a tick alone makes a batch that only keeps workers warm."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._data = Path(options["data"])
        self._after = int(options["after"])
        self._limit = Limit(entries=int(options["events"]), bytes=int(options["bytes"]))
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
        after, upto = start["offset"], end["offset"]
        if upto - after <= _SPLIT_ABOVE:
            return [InputPartition((after, upto))]
        middle = (after + upto) // 2
        return [InputPartition((after, middle)), InputPartition((middle, upto))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return entries(self._data, *partition.value)

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


_readers: dict[Path, SqliteLogReader] = {}


def entries(data: Path, after: int, upto: int) -> Iterator[pa.RecordBatch]:
    """The entries in (after, upto] as Arrow batches, then the marker. The reader stays open for the next batch."""
    log = _readers.get(data) or _readers.setdefault(data, SqliteLogReader(data))
    at = after
    while at < upto:
        columns = log.scan_columns(embedded(at), embedded(upto), _READ)
        if not columns.offsets:
            break
        at = columns.offsets[-1]
        yield pa.record_batch(
            [
                pa.array(columns.offsets, pa.int64()),
                pa.array(columns.topics, pa.int32()),
                pa.array(columns.ats, pa.int64()),
                pa.array(columns.heads, pa.binary()),
                pa.array(columns.datas, pa.binary()),
            ],
            schema=_ARROW,
        )
    yield pa.record_batch([[upto], [MARKER], [after], [None], [None]], schema=_ARROW)
