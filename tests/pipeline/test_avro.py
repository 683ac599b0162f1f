"""Events of topics with Avro payloads are routed by the schema that wrote them, live and in closed ranges."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.builders import a_filter, a_subscription, a_topic
from tests.pipeline.world import World
from tests.polling import until
from tidings.events.avro.schema import AvroSchema
from tidings.pipeline.routes import RouteTable
from tidings.registry.avro import AvroPayload, AvroVersion

pytestmark = pytest.mark.spark


def schema(*fields: tuple[str, Any]) -> AvroSchema:
    listed = [
        {"name": name, "type": type, "default": default}
        for name, type, default in ((*one, _DEFAULTS[one[1]]) for one in fields)
    ]
    return AvroSchema(json.dumps({"type": "record", "name": "Order", "fields": listed}, separators=(",", ":")))


_DEFAULTS = {"string": "", "long": 0}
ONE = schema(("state", "string"))
TWO = schema(("n", "long"), ("state", "string"))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    built = World(tmp_path)
    yield built
    built.close()


def avro_topic(text: str) -> Any:
    return a_topic(avro=AvroPayload(versions=(AvroVersion(0, text),)))


def by_avropath(name: str, path: str, matcher: str) -> Any:
    return a_subscription(name, filter=a_filter([{"type": "avropath", "path": path, "matcher": matcher}], "hermes"))


def test_each_event_is_read_by_the_schema_that_wrote_it(world: World, spark: SparkSession) -> None:
    world.put(avro_topic(ONE.text))
    world.put(by_avropath("new", ".state", "NEW"))
    world.put(by_avropath("seven", ".n", "7"))
    world.subscribe("as-json", "state = 'OLD'")
    before = world.publish_avro(ONE, {"state": "NEW"}, {"state": "OLD"})
    world.start(spark)
    world.wait_routed(before[-1])
    until(lambda: world.live)
    # The task that follows knows the first schema only: the second one comes with the change.
    world.put(avro_topic(TWO.text))
    after = world.publish_avro(TWO, {"n": 7, "state": "NEW"}, {"n": 1, "state": "OLD"}) + world.publish_avro(
        ONE, {"state": "NEW"}
    )
    world.wait_routed(after[-1])
    assert world.lane(1) == [before[0], after[0], after[2]]
    assert world.lane(2) == [after[0]]
    assert world.lane(3) == [before[1], after[1]]
    assert world.asides() == []


def test_a_change_brings_only_the_schemas_that_are_new() -> None:
    first, second = RouteTable(1, {}, ("a",)), RouteTable(2, {}, ("a", "b"))
    assert first.since(None).schemas == ["a"]
    assert second.since(first).schemas == ["b"]
