"""The smallest thing that Spark's Structured Streaming can do: one row through a Python source and an empty stage."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import LongType, StructField, StructType

from tidings import config
from tidings.pipeline import session

_SCHEMA = StructType([StructField("n", LongType())])


class TickSource(DataSource):
    """Counts the bytes of a file: every byte that is appended is a row."""

    @classmethod
    def name(cls) -> str:
        return "bench-ticks"

    def schema(self) -> StructType:
        return _SCHEMA

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return _Ticks(Path(self.options["file"]))


class _Ticks(DataSourceStreamReader):
    def __init__(self, file: Path) -> None:
        self._file = file

    def initialOffset(self) -> dict[str, int]:
        return {"n": 0}

    def latestOffset(self, start: dict[str, int], limit: object) -> dict[str, int]:
        until = time.monotonic() + 5
        while (size := self._file.stat().st_size) <= start["n"] and time.monotonic() < until:
            time.sleep(0.0005)
        return {"n": size}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return [InputPartition((start["n"], end["n"]))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch([pa.array([partition.value[1]], pa.int64())], names=["n"])


def _as_it_is(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def empty_batches(count: int) -> list[float]:
    """Seconds from an append to the end of a micro-batch with one row and an empty stage, written nowhere."""
    with tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder:
        file, done = Path(folder) / "ticks", threading.Event()
        file.touch()
        spark = session.start(config.load(environ={}).pipeline, Path(folder) / "spark")
        spark.dataSource.register(TickSource)

        def each(batch: DataFrame, number: int) -> None:
            batch.mapInArrow(_as_it_is, _SCHEMA).toArrow()
            done.set()

        frame = spark.readStream.format("bench-ticks").option("file", str(file)).load()
        query = frame.writeStream.foreachBatch(each).option("checkpointLocation", f"{folder}/checkpoint").start()
        try:
            return [_timed(file, done) for _ in range(count + 20)][20:]
        finally:
            query.stop()
            spark.stop()


def _timed(file: Path, done: threading.Event) -> float:
    time.sleep(0.2)
    done.clear()
    began = time.monotonic()
    with file.open("ab") as ticks:
        ticks.write(b".")
    assert done.wait(60)
    return time.monotonic() - began
