"""What is done: entries in, blocks of lane entries out. A stage from frame to frame, the same for a stream's batch and a range.

Every Spark Python worker keeps the compiled router of the newest registry revision it was told of.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType

from tidings import filters
from tidings.errors import FilterSyntaxError
from tidings.filters.router import Batch, Router, RouteSpec
from tidings.log.position import EMBEDDED, START, Marks, embedded
from tidings.pipeline.source import MARKER
from tidings.registry.model import FilterText, Route
from tidings.registry.store import open_reader

BLOCK, ASIDE, SCANNED = 0, 1, 2

ROUTED_SCHEMA = StructType(
    [
        StructField("kind", IntegerType()),
        StructField("lane", IntegerType()),
        StructField("first", LongType()),
        StructField("last", LongType()),
        StructField("offsets", BinaryType()),
        StructField("reason", StringType()),
    ]
)
"""BLOCK: entries of a lane. ASIDE: entry `first` could not be routed (to `lane`, or to any). SCANNED: (first, last] was read."""

_ARROW = pa.schema(
    [
        ("kind", pa.int32()),
        ("lane", pa.int32()),
        ("first", pa.int64()),
        ("last", pa.int64()),
        ("offsets", pa.binary()),
        ("reason", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class RoutePlan:
    """Which routes are in force for a batch: those of `revision` that govern any position above `floor`.

    `budget` bounds the bytes of lane entries that one task returns: past it the task stops and says how far it came, and the
    sink asks again for the rest.
    """

    data: Path
    revision: int
    floor: int
    budget: int = 32 << 20


def stage(frame: DataFrame, plan: RoutePlan) -> DataFrame:
    """The routed form of `frame`, whose rows are entries and markers as `source.py` makes them."""
    return frame.mapInArrow(partial(route_entries, plan), ROUTED_SCHEMA)


def route_entries(plan: RoutePlan, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs in a worker: one call for each input partition of a batch."""
    routing = _routing_for(plan)
    spent, stopped_at = 0, None
    for batch in batches:
        topics = batch.column("topic").to_numpy()
        markers = np.flatnonzero(topics == MARKER)
        rows = [_scanned(batch, int(index), stopped_at) for index in markers]
        events = batch if not len(markers) else batch.filter(pa.array(topics != MARKER))
        if events.num_rows and stopped_at is None:
            found = _routed(routing, events)
            rows = found + rows
            spent += sum(len(row[4] or b"") for row in found)
            if spent > plan.budget:
                stopped_at = int(events.column("offset")[-1].as_py())
        if rows:
            yield _as_arrow(rows)


Row = tuple[int, int | None, int, int, bytes | None, str | None]


def _as_arrow(rows: Sequence[Row]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    return pa.record_batch([pa.array(column, field.type) for column, field in zip(columns, _ARROW, strict=True)], schema=_ARROW)


def _scanned(batch: pa.RecordBatch, index: int, stopped_at: int | None) -> Row:
    after = int(batch.column("at")[index].as_py())
    upto = int(batch.column("offset")[index].as_py())
    return (SCANNED, None, after, upto if stopped_at is None else stopped_at, None, None)


def _routed(routing: Routing, events: pa.RecordBatch) -> list[Row]:
    offsets = events.column("offset").to_numpy()
    batch = Batch(
        positions=offsets.tolist(),
        topics=events.column("topic").to_pylist(),
        heads=events.column("head").to_pylist(),
        datas=events.column("data").to_pylist(),
    )
    return routing.route(batch, offsets)


def _runs(lanes: Any, offsets: Any) -> Iterator[tuple[int, Any]]:
    """The offsets of each lane; both arrays are ordered by lane, then offset."""
    if not len(lanes):
        return
    starts = np.concatenate(([0], np.flatnonzero(np.diff(lanes)) + 1))
    for start, run in zip(starts, np.split(offsets, starts[1:]), strict=True):
        yield int(lanes[start]), run


def _aside(lane: int | None, offset: int, reason: str) -> Row:
    return (ASIDE, lane, offset, offset, None, reason)


def _block(lane: int, offsets: Any) -> Row:
    return (BLOCK, lane, int(offsets[0]), int(offsets[-1]), offsets.astype("<i8").tobytes(), None)


class Routing:
    """The compiled routes of one revision. Routes whose stored filter no longer parses set their events aside, with the reason."""

    def __init__(self, routes: Sequence[Route]) -> None:
        specs, broken, self._reasons = [], [], dict[int, str]()
        for route in routes:
            try:
                specs.append(_spec(route, _parsed(route.filter)))
            except FilterSyntaxError as error:
                broken.append(_spec(route, None))
                self._reasons[int(route.lane)] = f"its filter cannot be evaluated: {error}"
        self._router = Router(specs)
        self._broken = Router(broken) if broken else None

    def route(self, batch: Batch, offsets: Any) -> list[Row]:
        """Rows for every match and for everything set aside; blocks come ordered by lane."""
        matches = self._router.route(batch)
        rows: list[Row] = [_block(lane, run) for lane, run in _runs(matches.lanes, offsets[matches.events])]
        rows += [_aside(lane, int(offsets[event]), reason) for event, lane, reason in matches.aside]
        if self._broken is not None:
            missed = self._broken.route(batch)
            pairs = zip(missed.events.tolist(), missed.lanes.tolist(), strict=True)
            rows += [_aside(lane, int(offsets[event]), self._reasons[lane]) for event, lane in pairs]
        return rows


def _spec(route: Route, parsed: filters.Filter | None) -> RouteSpec:
    return RouteSpec(
        lane=route.lane,
        topics=frozenset(int(topic) for topic in route.topics),
        filter=parsed,
        since=_offset(route.since),
        until=None if route.until is None else _offset(route.until),
    )


def _parsed(text: FilterText | None) -> filters.Filter | None:
    return None if text is None else filters.parse(text.dialect, text.text)


def _offset(marks: Marks) -> int:
    return int(marks.get(EMBEDDED, START))


@dataclass(slots=True)
class _Kept:
    """What a worker keeps: right for every plan of the same revision whose floor is not below its own."""

    plan: RoutePlan
    routing: Routing


_kept: dict[Path, _Kept] = {}


def _routing_for(plan: RoutePlan) -> Routing:
    kept = _kept.get(plan.data)
    if kept is None or kept.plan.revision != plan.revision or kept.plan.floor > plan.floor:
        kept = _kept[plan.data] = _Kept(plan, Routing(load_routes(plan)))
    return kept.routing


def load_routes(plan: RoutePlan) -> Sequence[Route]:
    """The routes of the plan. The registry may be newer by now: what came meanwhile holds above the end of the batch."""
    with open_reader(plan.data) as registry:
        return registry.routes(embedded(plan.floor))
