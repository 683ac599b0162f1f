"""Routing on Spark: a backlog of events among 1,000 subscriptions, beside the same events sent through an empty stage."""

from __future__ import annotations

import asyncio
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from bench.figures import Figure
from tidings import config
from tidings.clock import Instant
from tidings.log.port import Draft
from tidings.log.position import EMBEDDED, TopicNumber, embedded
from tidings.log.sqlite.lanes import SqliteLanesWriter
from tidings.log.sqlite.reader import SqliteLogReader
from tidings.log.sqlite.writer import SqliteLogWriter
from tidings.observe.board import Board
from tidings.pipeline import session
from tidings.pipeline.route import RoutePlan, stage
from tidings.pipeline.rows import ROUTED_SCHEMA, as_arrow, span
from tidings.pipeline.run import Parts, first_plan, start_query
from tidings.pipeline.sinks import LaneSink, Stage
from tidings.pipeline.source import FORMAT, LogSource, ranges_in
from tidings.registry.model import FilterText, Name, Pull, Subscription, Topic, TopicsSource
from tidings.registry.store import open_reader, open_writer

SUBSCRIPTIONS = 1000
SKUS = 500
"""Two subscriptions name each sku, so every event matches two."""


def figures(events: int = 1_000_000, rounds: int = 2) -> list[Figure]:
    """Events a second through the routing stage, and all of their bytes through an empty one; the best of `rounds`."""
    with tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder:
        data = Path(folder) / "data"
        data.mkdir()
        _fill(data, events)
        spark = session.start(config.load(environ={}).pipeline, Path(folder) / "spark")
        spark.dataSource.register(LogSource)
        try:
            empty, routed = 0.0, 0.0
            for _ in range(rounds):
                empty = max(empty, _rate(spark, data, empty_stage, "entries", events))
                routed = max(routed, _rate(spark, data, stage, "ranges", events))
        finally:
            spark.stop()
    return [
        Figure("source through an empty mapInArrow", empty, "events/s"),
        Figure(
            f"route a backlog of {events:,}, {SUBSCRIPTIONS:,} subscriptions, 2 matches an event",
            routed,
            "events/s",
            "the empty mapInArrow",
            routed / empty,
            "≥ 100,000 events/s",
        ),
    ]


def empty_stage(frame: DataFrame, plan: RoutePlan) -> DataFrame:
    """Only says how far it read."""
    return frame.mapInArrow(_only_ranges, ROUTED_SCHEMA)


def _only_ranges(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for after, upto in ranges_in(batches):
        yield as_arrow([span(after, upto)])


def _rate(spark: SparkSession, data: Path, chosen: Stage, rows: str, events: int) -> float:
    """Events a second between the first tenth and the end, so that starting does not count."""
    with tempfile.TemporaryDirectory(prefix="tidings-bench-lanes-") as folder:
        parts = Parts(SqliteLanesWriter(Path(folder)), SqliteLogReader(data), open_reader(data))
        settings = config.load(environ={}, flags={"data": str(data)})
        sink = LaneSink(first_plan(settings, parts), chosen, parts.lanes, parts.registry, Board(Path(folder), "bench"))
        query = start_query(settings, spark, sink, parts, Path(folder) / "checkpoint", rows)
        try:
            begun, at = _pass(parts, events // 10)
            ended, end = _pass(parts, events)
        finally:
            query.stop()
            parts.close()
        return (end - at) / (ended - begun)


def _pass(parts: Parts, mark: int) -> tuple[float, int]:
    while (routed := int(parts.lanes.routed().get(EMBEDDED, 0))) < mark:
        time.sleep(0.01)
    return time.monotonic(), routed


def _fill(data: Path, events: int) -> None:
    settings = config.load(environ={}, flags={"data": str(data)})
    orders = Name("default", "orders")
    registry = open_writer(data)
    registry.put([Topic(name=orders)], by="bench", at=Instant(0), marks=embedded(0))
    registry.put([_subscription(n, orders) for n in range(SUBSCRIPTIONS)], by="bench", at=Instant(0), marks=embedded(0))
    registry.close()
    asyncio.run(_append(settings, events))


def _subscription(number: int, topic: Name) -> Subscription:
    where = f'sku = "s{number % SKUS}"' + (" and amount >= 0" if number >= SKUS else "")
    return Subscription(
        name=Name("default", f"s{number}"),
        source=TopicsSource((topic,)),
        delivery=Pull(),
        filter=FilterText(dialect="where", text=where),
    )


async def _append(settings: config.Settings, events: int) -> None:
    writer = SqliteLogWriter(settings.data, settings.log)
    try:
        for start in range(0, events, 1000):
            await writer.append([_draft(n) for n in range(start, min(start + 1000, events))])
    finally:
        await writer.close()


def _draft(n: int) -> Draft:
    head = msgspec.json.encode(
        {"specversion": "1.0", "id": f"{n:032d}", "source": "/shop/orders", "type": "order.created", "subject": f"o-{n}"}
    )
    data = {"sku": f"s{n % SKUS}", "amount": n % 1000, "region": ("EU", "US", "UK")[n % 3], "note": "x" * 100}
    return Draft(topic=TopicNumber(1), at=Instant(n), key_hash=n, head=head, data=msgspec.json.encode(data))


def empty_batches(count: int) -> list[float]:
    """Seconds from an append to the end of a micro-batch with one event and an empty stage, written nowhere."""
    with tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder:
        data = Path(folder) / "data"
        data.mkdir()
        open_writer(data).close()
        spark = session.start(config.load(environ={}).pipeline, Path(folder) / "spark")
        spark.dataSource.register(LogSource)
        try:
            return asyncio.run(_timed_batches(spark, data, count))
        finally:
            spark.stop()


async def _timed_batches(spark: SparkSession, data: Path, count: int) -> list[float]:
    settings = config.load(environ={}, flags={"data": str(data)})
    writer = SqliteLogWriter(data, settings.log)
    done = threading.Event()
    frame = spark.readStream.format(FORMAT)
    for key, value in {"data": str(data), "after": "0", "events": "20000", "bytes": "33554432", "warm": "20"}.items():
        frame = frame.option(key, value)

    def each(batch: DataFrame, number: int) -> None:
        empty_stage(batch, RoutePlan(data, 0, 0)).toArrow()
        done.set()

    query = frame.load().writeStream.foreachBatch(each).option("checkpointLocation", str(data / "checkpoint")).start()
    try:
        times = [await _timed(writer, done, n) for n in range(count + 20)]
    finally:
        query.stop()
        await writer.close()
    return times[20:]


async def _timed(writer: SqliteLogWriter, done: threading.Event, n: int) -> float:
    await asyncio.sleep(0.2)
    done.clear()
    began = time.monotonic()
    await writer.append([_draft(n)])
    assert await asyncio.to_thread(done.wait, 60)
    return time.monotonic() - began
