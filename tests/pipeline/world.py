"""A small hub without HTTP: a real log, a real registry, real lanes, and a query over them when a test starts one."""

from __future__ import annotations

import asyncio
import struct
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from pyspark.sql import SparkSession

from tests.builders import a_filter, a_subscription, a_topic
from tests.polling import until
from tidings import config
from tidings.adapters import pipeline_parts
from tidings.clock import Instant
from tidings.errors import DataFolderUnusable
from tidings.events.avro.schema import AvroSchema
from tidings.events.model import Event
from tidings.events.stored import head_of
from tidings.lanes.parts import WHOLE
from tidings.lanes.sink import Aside, PartKey
from tidings.lanes.sqlite.block import key_in
from tidings.lanes.sqlite.writer import SqliteLanesReader
from tidings.log.port import Draft
from tidings.log.position import EMBEDDED, START, LaneNumber, Offset, Position, TopicNumber, embedded
from tidings.log.sqlite.writer import SqliteLogWriter
from tidings.observe.part_status import PartStatus
from tidings.pipeline.process import JvmWatch, RoutingJobs, RoutingLoop
from tidings.pipeline.route import route_range
from tidings.pipeline.spark_jobs import BUDGET, RouteRange, SparkFailed, SparkJobs
from tidings.registry.model import Exposure, LaneFill, Subscription, Topic
from tidings.registry.route_steps import rules_of
from tidings.registry.store import open_writer


class World:
    """Build it in `tmp_path`, `close` it at the end. Topic numbers and lanes are 1, 2, … in the order of their creation."""

    def __init__(self, data: Path, **sections: dict[str, Any]) -> None:
        self.data = data
        flags = {"data": str(data), **sections}
        self.settings = config.load(environ={}, flags=flags)
        self._runner = asyncio.Runner()
        self._registry = open_writer(data)
        self._log = self._runner.run(self._opened())
        self.parts = pipeline_parts(self.settings)
        self.lanes = SqliteLanesReader(data)
        self.board = PartStatus(data / "run", "pipeline")
        self._routing: threading.Thread | None = None
        self._stop = threading.Event()
        self._failure = ""

    async def _opened(self) -> SqliteLogWriter:
        return SqliteLogWriter(self.data, self.settings.log)

    def topic(self, name: str = "orders") -> None:
        self.put(a_topic(name))

    def subscribe(self, name: str, where: str | None, *topics: str, after: int | None = None) -> None:
        """A pull subscription; called again with another filter it replaces the first. `after`: its lane is filled from there."""
        fill = None if after is None else LaneFill.beyond(embedded(after))
        self.put(a_subscription(name, *topics, filter=a_filter(where, "where") if where else None, fill=fill))

    def filled(self, number: int, times: int = 1) -> bool:
        """Whether a lane was filled so many times."""
        found = self.lanes.fillings().get(LaneNumber(number))
        return found is not None and found.done and found.number == times

    def put(self, document: Topic | Subscription | Exposure) -> None:
        self._runner.run(self._log.fence(lambda marks: self._registry.put([document], by="test", at=Instant(0), marks=marks)))

    def unsubscribe(self, name: str) -> None:
        from tests.builders import a_name

        def settle(marks: Any) -> Any:
            return self._registry.delete(Subscription, a_name(name), by="test", at=Instant(0), marks=marks)

        self._runner.run(self._log.fence(settle))

    def publish(self, *datas: Any, topic: int = 1) -> list[int]:
        """Append events with these payloads; their offsets."""
        drafts = [_draft(data, topic) for data in datas]
        return [int(position.offset) for position in self._runner.run(self._log.append(drafts))]

    def publish_avro(self, schema: AvroSchema, *values: Any, topic: int = 1) -> list[int]:
        """Append events with these values, written by the schema; their offsets."""
        drafts = [
            msgspec.structs.replace(_draft(None, topic), head=_avro_head(schema), data=schema.from_value(value))
            for value in values
        ]
        return [int(position.offset) for position in self._runner.run(self._log.append(drafts))]

    def settle_log(self) -> None:
        """Bring everything that was published into log.db itself."""
        self._runner.run(self._log.fence(lambda marks: self._log._committer.rest()))

    def start(self, spark: SparkSession, route: RouteRange = route_range, budget: int = BUDGET) -> None:
        """Route from where the lanes are, until `stop`."""
        self._stop.clear()
        made = partial(SparkJobs, spark.sparkContext, reader=self.parts.source.reader, regex=rules_of(self.settings.regex))
        jobs = RoutingJobs(made(str(self.data)), made(f"{self.data}, filling"))
        for one in jobs:
            one.route, one.budget = route, budget
        watch = JvmWatch(spark)
        loop = RoutingLoop(self.settings.pipeline, jobs, self.parts, self.board, self._stop, watch.silent_for)
        self._routing = threading.Thread(target=self._run, args=(loop,), daemon=True)
        self._routing.start()

    def _run(self, loop: RoutingLoop) -> None:
        try:
            loop.run()
        except (*SparkFailed, DataFolderUnusable) as error:
            self._failure = str(error)

    def stop(self) -> None:
        if self._routing is not None:
            self._stop.set()
            self._routing.join(60)
            assert not self._routing.is_alive()
            self._routing = None

    def failure(self, within: float = 180) -> str:
        """Why routing ended by itself."""
        until(lambda: self._routing is not None and not self._routing.is_alive(), within=within)
        return self._failure

    @property
    def live(self) -> bool:
        """Whether the log is followed now."""
        return any(series.name == "tidings_routing_live" and series.value for series in self.board.face().series)

    def wait_routed(self, offset: int, within: float = 180) -> None:
        until(lambda: self.routed() >= offset, within=within)

    def routed(self) -> int:
        return int(self.lanes.routed().get(EMBEDDED, START))

    def lane(self, number: int) -> list[int]:
        """Everything in a lane, in its order."""
        found: list[int] = []
        after = Offset(0)
        while blocks := self.lanes.blocks(LaneNumber(number), after, EMBEDDED, 100):
            for block in blocks:
                found += struct.unpack(f"<{block.count}q", block.offsets)
            after = blocks[-1].last
        return found

    def bodies(self, number: int) -> list[bytes | None]:
        """The projected bodies of a lane's entries; None for those that refer to the log."""
        found: list[bytes | None] = []
        for offset in map(Offset, self.lane(number)):
            (block,) = self.lanes.blocks(LaneNumber(number), Offset(offset - 1), EMBEDDED, 1)
            digest = key_in(block, offset)
            assert digest is not None
            key = PartKey(Position(EMBEDDED, offset), digest)
            found.append(None if digest == WHOLE else self.lanes.bodies([key])[key])
        return found

    def asides(self) -> list[Aside]:
        return list(self.lanes.asides(None, 1000))

    def close(self) -> None:
        self.stop()
        self.parts.close()
        self.lanes.close()
        self._runner.run(self._log.close())
        self._registry.close()
        self._runner.close()


def _avro_head(schema: AvroSchema) -> bytes:
    attributes: dict[str, Any] = {"specversion": "1.0", "id": "1", "source": "/shop", "type": "order"}
    return head_of(Event({**attributes, "datacontenttype": "avro/binary"}, avro=schema.fingerprint))


def _draft(data: Any, topic: int) -> Draft:
    head = b'{"specversion":"1.0","id":"1","source":"/shop","type":"order","datacontenttype":"application/json"}'
    return Draft(
        topic=TopicNumber(topic), at=Instant(time.time_ns() // 1000), key_hash=1, head=head, data=msgspec.json.encode(data)
    )
