"""A small hub without HTTP: a real log, a real registry, real lanes, and a query over them when a test starts one."""

from __future__ import annotations

import asyncio
import struct
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tests.builders import a_filter, a_subscription, a_topic
from tidings import config
from tidings.clock import Instant
from tidings.log.block import REFERENCE, digest_in
from tidings.log.port import Aside, BodyKey, Draft
from tidings.log.position import EMBEDDED, START, LaneNumber, Offset, Position, TopicNumber
from tidings.log.sqlite.lanes import SqliteLanesReader, SqliteLanesWriter
from tidings.log.sqlite.reader import SqliteLogReader
from tidings.log.sqlite.writer import SqliteLogWriter
from tidings.observe.board import Board
from tidings.pipeline.route import RoutePlan, stage
from tidings.pipeline.run import Parts, first_plan, start_query
from tidings.pipeline.sinks import LaneSink, Stage
from tidings.registry.model import Exposure, Subscription, Topic
from tidings.registry.store import open_reader, open_writer


class World:
    """Build it in `tmp_path`, `close` it at the end. Topic numbers and lanes are 1, 2, … in the order of their creation."""

    def __init__(self, data: Path, **sections: dict[str, Any]) -> None:
        self.data = data
        flags = {"data": str(data), "pipeline": {"warm_interval": "1s"}, **sections}
        self.settings = config.load(environ={}, flags=flags)
        self._runner = asyncio.Runner()
        self._registry = open_writer(data)
        self._log = self._runner.run(self._opened())
        self.parts = Parts(SqliteLanesWriter(data), SqliteLogReader(data), open_reader(data))
        self.lanes = SqliteLanesReader(data)
        self.board = Board(data / "run", "pipeline")
        self._query: StreamingQuery | None = None
        self._queries = 0

    async def _opened(self) -> SqliteLogWriter:
        return SqliteLogWriter(self.data, self.settings.log)

    def topic(self, name: str = "orders") -> None:
        self.put(a_topic(name))

    def subscribe(self, name: str, where: str | None, *topics: str) -> None:
        """A pull subscription; called again with another filter it replaces the first."""
        self.put(a_subscription(name, *topics, filter=a_filter(where, "where") if where else None))

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

    def start(self, spark: SparkSession, chosen: Stage = stage, budget: int = 32 << 20) -> None:
        """Start the query with a checkpoint of its own."""
        self._queries += 1

        def limited(frame: Any, plan: RoutePlan) -> Any:
            return chosen(frame, replace(plan, budget=budget))

        sink = LaneSink(first_plan(self.settings, self.parts), limited, self.parts.lanes, self.parts.registry, self.board)
        self._query = start_query(self.settings, spark, sink, self.parts, self.data / f"checkpoint-{self._queries}")

    def stop(self) -> None:
        if self._query is not None:
            self._query.stop()
            self._query = None

    def failure(self, within: float = 180) -> str:
        """Why the query ended by itself."""
        assert self._query is not None
        wait_until(lambda: self._query is not None and not self._query.isActive, within)
        return str(self._query.exception())

    def wait_routed(self, offset: int, within: float = 180) -> None:
        wait_until(lambda: self.routed() >= offset, within)

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
            digest = digest_in(block, offset)
            assert digest is not None
            key = BodyKey(Position(EMBEDDED, offset), digest)
            found.append(None if digest == REFERENCE else self.lanes.bodies([key])[key])
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


def wait_until(holds: Callable[[], bool], within: float) -> None:
    give_up = time.monotonic() + within
    while not holds():
        assert time.monotonic() < give_up, f"not within {within:.0f} s"
        time.sleep(0.02)


def _draft(data: Any, topic: int) -> Draft:
    head = b'{"specversion":"1.0","id":"1","source":"/shop","type":"order","datacontenttype":"application/json"}'
    return Draft(
        topic=TopicNumber(topic), at=Instant(time.time_ns() // 1000), key_hash=1, head=head, data=msgspec.json.encode(data)
    )
