"""Routing on Spark: a backlog of events among 1,000 subscriptions, beside the same events read and routed nowhere."""

from __future__ import annotations

import asyncio
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
from pyspark.sql import SparkSession

from bench.figures import Figure
from tidings import config
from tidings.clock import Instant
from tidings.lanes.sqlite.writer import SqliteLanesWriter
from tidings.log.port import Draft, Limit
from tidings.log.position import EMBEDDED, TopicNumber, embedded
from tidings.log.ranges import Range, RangeReader
from tidings.log.sqlite.reader import SqliteLogReader
from tidings.log.sqlite.routing_source import SqliteRoutingSource
from tidings.log.sqlite.writer import SqliteLogWriter
from tidings.observe.part_status import PartStatus
from tidings.pipeline import session
from tidings.pipeline.process import PipelineParts, RoutingLoop
from tidings.pipeline.route import Routing, route_range
from tidings.pipeline.routed_rows import RoutedRow, span
from tidings.pipeline.spark_jobs import RouteRange
from tidings.registry.model import FilterText, Name, Pull, Subscription, Topic, TopicsSource
from tidings.registry.store import open_reader, open_writer

_PAGE = Limit(entries=5000, bytes=8 << 20)
SUBSCRIPTIONS = 1000
SKUS = 500
"""Two subscriptions name each sku, so every event matches two."""


def figures(events: int = 1_000_000, rounds: int = 2) -> list[Figure]:
    """Events a second through routing, and the same events read by the same tasks and routed nowhere; the best of `rounds`."""
    with tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder:
        data = Path(folder) / "data"
        data.mkdir()
        _fill(data, events)
        spark = session.start(config.load(environ={}).pipeline, Path(folder) / "spark")
        try:
            empty, routed = 0.0, 0.0
            for _ in range(rounds):
                empty = max(empty, _rate(spark, data, only_read, events))
                routed = max(routed, _rate(spark, data, route_range, events))
        finally:
            spark.stop()
    return [
        Figure("a backlog read by Spark's tasks and routed nowhere", empty, "events/s"),
        Figure(
            f"route a backlog of {events:,}, {SUBSCRIPTIONS:,} subscriptions, 2 matches an event",
            routed,
            "events/s",
            "the same without routing",
            routed / empty,
            "≥ 200,000 events/s",
        ),
    ]


def only_read(routing: Routing, reader: RangeReader, wanted: Range, budget: int) -> Iterator[RoutedRow]:
    """Only says how far it read."""
    assert wanted.upto is not None
    for _ in reader.pages(wanted, _PAGE):
        pass
    yield span(wanted.after, wanted.upto)


def _rate(spark: SparkSession, data: Path, route: RouteRange, events: int) -> float:
    """Events a second between the first tenth and the end, so that starting does not count."""
    with tempfile.TemporaryDirectory(prefix="tidings-bench-lanes-") as folder:
        settings = config.load(environ={}, flags={"data": str(data)})
        lanes, log, stop = SqliteLanesWriter(Path(folder)), SqliteLogReader(data), threading.Event()
        registry = open_reader(data)
        parts = PipelineParts(lanes, SqliteRoutingSource(data, log), log, registry, lambda: None)
        loop = RoutingLoop(settings, spark, parts, PartStatus(Path(folder), "bench"), stop)
        loop.jobs.route = route
        running = threading.Thread(target=loop.run, daemon=True)
        running.start()
        try:
            begun, at = _pass(lanes, events // 10)
            ended, end = _pass(lanes, events)
        finally:
            stop.set()
            running.join()
            lanes.close()
            log.close()
            registry.close()
        return (end - at) / (ended - begun)


def _pass(lanes: SqliteLanesWriter, mark: int) -> tuple[float, int]:
    while (routed := int(lanes.routed().get(EMBEDDED, 0))) < mark:
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
