"""Routing as it runs in the hub: real Spark, real files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.builders import a_filter, a_subscription, an_exposure
from tests.pipeline.world import World
from tidings.log.ranges import Range, RangeReader
from tidings.pipeline.route import Routing, route_range
from tidings.pipeline.routed_rows import RoutedRow
from tidings.registry.model import ProjectionText, Scope

pytestmark = pytest.mark.spark


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    built = World(tmp_path)
    yield built
    built.close()


def test_each_lane_gets_what_its_filter_lets_through(world: World, spark: SparkSession) -> None:
    world.topic()
    world.topic("returns")
    world.subscribe("all", None)
    world.subscribe("big", "total >= 100")
    world.subscribe("both", None, "orders", "returns")
    offsets = world.publish({"total": 5}, {"total": 100}, {"total": "many"}, {"total": 250})
    returned = world.publish({"total": 1000}, topic=2)

    world.start(spark)
    world.wait_routed(returned[-1])

    assert world.lane(1) == offsets
    assert world.lane(2) == [offsets[1], offsets[3]]
    assert world.lane(3) == [*offsets, *returned]


def test_a_backlog_is_routed_by_the_versions_in_force_when_each_event_was_published(world: World, spark: SparkSession) -> None:
    world.topic()
    before = world.publish({"n": 1})
    world.subscribe("picky", "n = 1")
    first = world.publish({"n": 1}, {"n": 2})
    world.subscribe("picky", "n = 2")
    second = world.publish({"n": 1}, {"n": 2})
    world.unsubscribe("picky")
    after = world.publish({"n": 1}, {"n": 2})

    world.start(spark)
    world.wait_routed(after[-1])

    assert world.lane(1) == [first[0], second[1]]
    assert before[0] not in world.lane(1)


def test_a_changed_filter_holds_from_its_position_while_the_query_runs_on(world: World, spark: SparkSession) -> None:
    world.topic()
    world.subscribe("picky", "n = 1")
    world.start(spark)
    first = world.publish({"n": 1}, {"n": 2})
    world.wait_routed(first[-1])

    world.subscribe("picky", "n = 2")
    world.subscribe("late", None)
    second = world.publish({"n": 1}, {"n": 2})
    world.wait_routed(second[-1])

    assert world.lane(1) == [first[0], second[1]]
    assert world.lane(2) == second


def test_a_query_that_starts_again_without_its_checkpoint_repeats_and_misses_nothing(world: World, spark: SparkSession) -> None:
    world.topic()
    world.subscribe("all", None)
    offsets = world.publish({"n": 1}, {"n": 2})
    world.start(spark)
    world.wait_routed(offsets[-1])
    world.stop()
    offsets += world.publish({"n": 3}, {"n": 4})

    world.start(spark)
    world.wait_routed(offsets[-1])

    assert world.lane(1) == offsets


def test_a_task_that_spends_its_budget_goes_on_where_it_stopped(world: World, spark: SparkSession) -> None:
    world.topic()
    for n in range(5):
        world.subscribe(f"all{n}", None)
    offsets = [offset for n in range(0, 25_000, 1000) for offset in world.publish(*({"n": n + k} for k in range(1000)))]

    world.start(spark, budget=40_000)
    world.wait_routed(offsets[-1], within=120)

    assert all(world.lane(lane) == offsets for lane in range(1, 6))


def test_an_event_that_kills_its_worker_is_set_aside_with_its_reason_and_the_rest_goes_on(
    world: World, spark: SparkSession
) -> None:
    world.topic()
    world.subscribe("all", None)
    offsets = world.publish(*({"n": n} for n in range(7)))
    poison = offsets[3]

    world.start(spark, partial(dies_of, poison))
    world.wait_routed(offsets[-1], within=120)
    more = world.publish({"n": 8})
    world.wait_routed(more[-1], within=120)

    assert world.lane(1) == [offset for offset in offsets if offset != poison] + more
    assert [(aside.position.offset, aside.lane) for aside in world.asides()] == [(poison, None)]
    assert world.asides()[0].reason


def test_a_failure_that_hits_every_event_stops_the_query_and_sets_nothing_aside(world: World, spark: SparkSession) -> None:
    world.topic()
    world.subscribe("all", None)
    offsets = world.publish({"n": 1}, {"n": 2}, {"n": 3})
    world.start(spark, always_fails)

    assert world.failure(within=120)
    assert world.asides() == []
    assert world.routed() < offsets[0]


def test_a_projected_lane_holds_projected_bodies_and_an_unprojected_one_references(world: World, spark: SparkSession) -> None:
    world.topic()
    world.subscribe("all", None)
    world.put(a_subscription("parts", projection=ProjectionText(mode="include", paths=("total", "items.*.name"))))
    offsets = world.publish({"total": 1.0, "items": [{"name": "x", "v": 1}], "secret": 1}, {"secret": 2})

    world.start(spark)
    world.wait_routed(offsets[-1])

    assert (world.lane(1), world.lane(2)) == (offsets, offsets)
    assert world.bodies(1) == [None, None]
    assert world.bodies(2) == [b'{"total":1.0,"items":[{"name":"x"}]}', b"{}"]


def test_a_scope_strips_what_its_filter_selects_before_the_consumers_filter_looks(world: World, spark: SparkSession) -> None:
    eu = Scope(filter=a_filter('region = "EU"', "where"), projection=ProjectionText(mode="exclude", paths=("secret",)))
    world.topic()
    world.put(an_exposure(scopes={"eu": eu}))
    world.put(a_subscription("seeing", scopes=("eu",), filter=a_filter("total > 1", "where")))
    world.put(a_subscription("prying", scopes=("eu",), filter=a_filter("secret = 1", "where")))
    offsets = world.publish(*({"region": region, "total": 2, "secret": 1} for region in ("EU", "US")))

    world.start(spark)
    world.wait_routed(offsets[-1])

    assert world.lane(1) == offsets[:1]
    assert world.bodies(1) == [b'{"region":"EU","total":2}']
    assert world.lane(2) == []


def test_bodies_spend_the_budget_of_a_task_too(world: World, spark: SparkSession) -> None:
    world.topic()
    world.put(a_subscription("parts", projection=ProjectionText(mode="exclude", paths=("secret",))))
    offsets = world.publish(*({"n": n, "text": "x" * 100, "secret": 1} for n in range(300)))

    world.start(spark, budget=10_000)
    world.wait_routed(offsets[-1], within=120)

    assert world.lane(1) == offsets
    assert world.bodies(1) == [b'{"n":%d,"text":"%b"}' % (n, b"x" * 100) for n in range(300)]


def test_a_stored_filter_that_no_longer_parses_sets_only_its_own_events_aside(world: World, spark: SparkSession) -> None:
    world.topic()
    world.subscribe("good", None)
    world.subscribe("bad", "n = 1")
    _spoil_filter_of(world, "bad")
    offsets = world.publish({"n": 1}, {"n": 2})

    world.start(spark)
    world.wait_routed(offsets[-1])

    assert world.lane(1) == offsets
    assert [(aside.position.offset, aside.lane) for aside in world.asides()] == [(offset, 2) for offset in offsets]
    assert "filter" in world.asides()[0].reason


def test_an_expression_that_needs_backtracking_is_blocked_by_its_budget_and_slows_nobody(
    tmp_path: Path, spark: SparkSession
) -> None:
    world = World(tmp_path, regex={"fallback": "true", "match_timeout": "20ms", "budget": "50ms"})
    try:
        world.topic()
        world.subscribe("all", None)
        world.subscribe("slow", 'note matches "^(a|aa)+(?<!x)$"')
        offsets = world.publish(*({"note": "a" * 40 + f"!{n}"} for n in range(300)))

        world.start(spark)
        world.wait_routed(offsets[-1], within=120)

        assert world.lane(1) == offsets
        assert world.lane(2) == []
        kept_from = {aside.position.offset for aside in world.asides() if aside.lane == 2}
        assert offsets[-1] in kept_from
        assert "regular expression" in world.asides()[-1].reason
        counted = {series.name: series.value for series in world.board.face().series}
        assert 0 < counted["tidings_regex_set_aside_total"] <= len(kept_from)
        assert "tidings_routed_plainly_total" not in counted
    finally:
        world.close()


def dies_of(poison: int, routing: Routing, reader: RangeReader, wanted: Range, budget: int) -> Iterator[RoutedRow]:
    if wanted.upto is not None and wanted.after < poison <= wanted.upto:
        os._exit(1)
    return route_range(routing, reader, wanted, budget)


def always_fails(routing: Routing, reader: RangeReader, wanted: Range, budget: int) -> Iterator[RoutedRow]:
    raise ValueError("nothing works today")


def _spoil_filter_of(world: World, name: str) -> None:
    """As if an older version had stored a filter that this one cannot read."""
    import sqlite3

    with sqlite3.connect(world.data / "registry.db") as file:
        changed = file.execute("UPDATE versions SET document = replace(document, 'n = 1', 'n === 1') WHERE name = ?", (name,))
        assert changed.rowcount == 1


def test_a_damaged_page_of_the_log_stops_routing_and_is_named_and_no_event_is_set_aside(
    world: World, spark: SparkSession
) -> None:
    world.topic()
    world.subscribe("all", None)
    offsets = world.publish(*({"n": n, "text": "x" * 1000} for n in range(400)))
    world.settle_log()
    with (world.data / "log.db").open("r+b") as file:
        file.seek(60 * 4096)
        file.write(b"\xff" * 4096)

    world.start(spark)
    world.failure(within=180)

    assert "log.db is damaged" in (world.parts.source.fault() or "")
    assert world.asides() == []
    assert world.routed() < offsets[-1]
