"""`tidings-feed`: partitions of the feed are Spark partitions, cursors are offsets; exactly once through Spark's checkpoint."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from tidings.client.feeds.client import FeedClient
from tidings.client.spark.look_ahead import Ahead
from tidings.client.spark.offsets import Offset, Portion, offset_of, portions_in
from tidings.client.spark.options import Options
from tidings.client.spark.partition_walk import Events, replay, walk
from tidings.client.spark.rows import DDL, record_batch
from tidings.errors import HubUnreachable

FORMAT = "tidings-feed"

log = logging.getLogger("tidings.feeds")


def register(spark: SparkSession) -> None:
    """Make `format("tidings-feed")` known to a session. On a cluster, Tidings has to be installed for its workers too."""
    _work_with_this_python(spark)
    spark.dataSource.register(FeedDataSource)


def _work_with_this_python(spark: SparkSession) -> None:
    """Let Spark's workers on this machine be the Python that runs now.

    Unless PYSPARK_PYTHON says otherwise Spark takes the first `python3` of the PATH, which has nothing of ours where an
    environment is used without being activated.
    """
    context = getattr(spark, "sparkContext", None)
    if context is not None and context.master.startswith("local") and not os.environ.get("PYSPARK_PYTHON"):
        context.pythonExec = sys.executable


class FeedDataSource(DataSource):
    """A feed of any ZeroEventHub or FeedAPI server, as a stream (`spark.readStream`) or as it is now (`spark.read`)."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return DDL

    def reader(self, schema: StructType) -> DataSourceReader:
        return OnceReader(Options.of(dict(self.options)))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return FeedStreamReader(Options.of(dict(self.options)))


class OnceReader(DataSourceReader):
    """Reads every partition from `start` to its present end."""

    def __init__(self, options: Options) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        async def discover() -> list[str]:
            async with self._options.client() as client:
                return [one.id for one in (await client.discover()).partitions]

        return [InputPartition(id) for id in asyncio.run(discover())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        options = self._options
        return _batches(options, lambda client: walk(client, options, partition.value, options.start))


class FeedStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Follows the feed. `latestOffset` runs in one process for the whole query, `read` in executors, as often as Spark likes."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._runner: asyncio.Runner | None = None
        self._ahead: Ahead | None = None
        self._empty_at = 0.0
        self._once = False

    def initialOffset(self) -> Offset:
        return offset_of({}, [])

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._options.max_events)

    def prepareForTriggerAvailableNow(self) -> None:
        self._once = True
        self._opened()[1].once()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """A server that is away has no news; only a query that ends by itself has to hear of it."""
        time.sleep(max(0.0, self._empty_at + self._options.poll_interval - time.monotonic()))
        runner, ahead = self._opened()
        most = None if isinstance(limit, ReadAllAvailable) else getattr(limit, "max_rows", self._options.max_events)
        until = time.monotonic() + self._options.patience
        while True:
            try:
                found = runner.run(ahead.next_offset(start, most))
                break
            except HubUnreachable as error:
                log.warning("%s", error)
                if self._once and time.monotonic() > until:
                    raise
                if not self._once:
                    found = start
                    break
                time.sleep(max(self._options.backoff.first, error.retry_after))
        self._empty_at = time.monotonic() if found == start else 0.0
        return found

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        return [InputPartition(portion) for portion in portions_in(end)] if start != end else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        options, portion = self._options, partition.value
        assert isinstance(portion, Portion)
        return _batches(options, lambda client: replay(client, options, portion))

    def stop(self) -> None:
        if self._runner is not None:
            self._runner.close()
            self._runner, self._ahead = None, None

    def _opened(self) -> tuple[asyncio.Runner, Ahead]:
        # Opened here and not in __init__: Spark pickles the reader to the workers, which need neither.
        if self._runner is None or self._ahead is None:
            self._runner = asyncio.Runner()
            self._ahead = Ahead(self._options.client(), self._options)
        return self._runner, self._ahead

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_runner": None, "_ahead": None}


def _batches(options: Options, read: Callable[[FeedClient], AsyncGenerator[Events, None]]) -> Iterator[pa.RecordBatch]:
    """What an asynchronous reading gives, as Arrow batches."""
    with asyncio.Runner() as runner:
        client = options.client()
        events = read(client)
        try:
            while (some := runner.run(_next(events))) is not None:
                if some:
                    yield record_batch(some)
        finally:
            runner.run(_end(events, client))


async def _next(events: AsyncGenerator[Events, None]) -> Events | None:
    return await anext(events, None)


async def _end(events: AsyncGenerator[Events, None], client: FeedClient) -> None:
    await events.aclose()
    await client.close()
