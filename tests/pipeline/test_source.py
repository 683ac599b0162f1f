"""The log as Spark reads it: entries with their closing rows, or the ranges alone."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.pipeline.world import World
from tidings.pipeline.source import FORMAT, MARKER, TASKS, RangeReader, ranges_in

pytestmark = pytest.mark.spark


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    built = World(tmp_path)
    yield built
    built.close()


def read(world: World, spark: SparkSession, upto: int, **options: str) -> pa.Table:
    frame = spark.read.format(FORMAT).option("data", str(world.data)).option("after", "0").option("upto", str(upto))
    return frame.options(**options).load().toArrow()


def test_a_range_is_read_as_its_entries_and_a_row_that_closes_it(world: World, spark: SparkSession) -> None:
    world.topic()
    offsets = world.publish({"n": 1}, {"n": 2})

    table = read(world, spark, offsets[-1])

    assert table.column("offset").to_pylist() == [*offsets, offsets[-1]]
    assert table.column("topic").to_pylist() == [1, 1, MARKER]
    assert table.column("data").to_pylist() == [b'{"n":1}', b'{"n":2}', None]
    assert list(ranges_in(table.to_batches())) == [(0, offsets[-1])]


def test_ranges_alone_carry_no_entry(world: World, spark: SparkSession) -> None:
    world.topic()
    offsets = world.publish({"n": 1}, {"n": 2})

    table = read(world, spark, offsets[-1], rows="ranges")

    assert table.column("topic").to_pylist() == [MARKER]
    assert list(ranges_in(table.to_batches())) == [(0, offsets[-1])]


@pytest.mark.parametrize(("size", "tasks"), [(0, 1), (1, 1), (7999, 1), (8000, 2), (16_003, TASKS), (80_000, TASKS)])
def test_a_large_range_is_cut_into_tasks_without_gap_or_overlap(size: int, tasks: int) -> None:
    parts = [part.value for part in RangeReader({"after": "10", "upto": str(10 + size)}).partitions()]

    assert len(parts) == tasks
    assert (parts[0][0], parts[-1][1]) == (10, 10 + size)
    assert all(one[1] == other[0] for one, other in pairwise(parts))
    assert max(upto - after for after, upto in parts) - min(upto - after for after, upto in parts) <= 1
