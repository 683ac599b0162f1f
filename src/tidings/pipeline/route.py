"""What is done: ranges of the log in, blocks of lane entries out. A stage from frame to frame, for a stream's batch and a range.

Every Spark Python worker keeps the compiled router of the newest registry revision it was told of.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from tidings import filters
from tidings.errors import FilterSyntaxError
from tidings.filters import RE2_ONLY, RegexRules
from tidings.filters.router import Batch, Matches, Router, RouteSpec
from tidings.log.block import REFERENCE
from tidings.log.position import EMBEDDED, START, Marks, embedded
from tidings.log.sqlite.reader import Columns
from tidings.pipeline.rows import BLOCK, ROUTED_SCHEMA, Row, as_arrow, aside, block, body, counted, merged, size, span
from tidings.pipeline.source import pages, ranges_in
from tidings.pipeline.views import Seen, View, Views, both
from tidings.pipeline.workers import settle
from tidings.registry.model import Route
from tidings.registry.passages import passage_of
from tidings.registry.store import open_reader


@dataclass(frozen=True, slots=True)
class RoutePlan:
    """Which routes are in force for a batch: those of `revision` that govern any position above `floor`.

    `budget` bounds the bytes of lane entries and bodies that one task returns: past it the task stops and says how far it came,
    and the sink asks again for the rest.
    """

    data: Path
    revision: int
    floor: int
    regex: RegexRules = RE2_ONLY
    budget: int = 16 << 20


def stage(frame: DataFrame, plan: RoutePlan) -> DataFrame:
    """The routed form of what the ranges in `frame` stand for; `source.py` makes them."""
    return frame.mapInArrow(partial(route_ranges, plan), ROUTED_SCHEMA)


def route_ranges(plan: RoutePlan, ranges: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs in a worker, one call for each task. The worker reads the log by itself: sending entries through Spark's Java process
    costs more than reading and routing them."""
    for after, upto in ranges_in(ranges):
        yield from route_pages(plan, after, upto, pages(plan.data, after, upto))


def route_pages(plan: RoutePlan, after: int, upto: int, pages: Iterator[Columns]) -> Iterator[pa.RecordBatch]:
    """What came of the entries in (after, upto], as far as the budget allows, and how far that is."""
    routing = _routing_for(plan)
    blocks: list[Row] = []
    spent, reached = 0, upto
    for page in pages:
        rows, reached = _routed(routing, page, plan.budget - spent)
        spent += sum(map(size, rows))
        blocks += [row for row in rows if row.kind == BLOCK]
        if others := [row for row in rows if row.kind != BLOCK]:
            yield as_arrow(others)
        if spent > plan.budget or reached < page.offsets[-1]:
            break
        reached = upto
    # After a stop the empty span says where the range ends, so that the sink knows of the rest.
    spans = [span(after, reached)] if reached == upto else [span(after, reached), span(upto, upto)]
    yield as_arrow([*(row for _, row in merged(blocks)), *spans])


def _routed(routing: Routing, page: Columns, budget: int) -> tuple[list[Row], int]:
    """The rows of these entries, and how far they go: less than all of them when bodies spent the budget."""
    batch = Batch(positions=page.offsets, topics=page.topics, heads=page.heads, datas=page.datas)
    return routing.route(batch, np.array(page.offsets, np.int64), budget)


def _runs(lanes: Any, offsets: Any) -> Iterator[tuple[int, Any]]:
    """The offsets of each lane; both arrays are ordered by lane, then offset."""
    if not len(lanes):
        return
    starts = np.concatenate(([0], np.flatnonzero(np.diff(lanes)) + 1))
    for start, run in zip(starts, np.split(offsets, starts[1:]), strict=True):
        yield int(lanes[start]), run


Way: TypeAlias = RouteSpec | View | str
"""What became of one route: routed as it is, with projections, or not at all, for the reason given."""


class Routing:
    """The compiled routes of one revision. Routes whose stored filter no longer parses set their events aside, with the reason.

    `before`: the routing of an earlier revision. What both have in common is taken over, so that one changed subscription among
    thousands costs little.
    """

    def __init__(self, routes: Sequence[Route], regex: RegexRules = RE2_ONLY, before: Routing | None = None) -> None:
        known = {} if before is None else before._ways
        self._ways: dict[bytes, Way] = {}
        broken, self._reasons = list[RouteSpec](), dict[int, str]()
        for route in routes:
            name = msgspec.json.encode(route)
            way = self._ways[name] = known.get(name) or _way_of(route, regex)
            if isinstance(way, str):
                broken.append(_spec(route, None))
                self._reasons[int(route.lane)] = way
        specs = [way for way in self._ways.values() if isinstance(way, RouteSpec)]
        views = [way for way in self._ways.values() if isinstance(way, View)]
        self._router: Router = Router(specs, regex) if before is None else before._router.updated(specs)
        self._views = Views(views, regex) if views else None
        self._broken = Router(broken) if broken else None

    def route(self, batch: Batch, offsets: Any, budget: int) -> tuple[list[Row], int]:
        """Rows for every match and for everything set aside, and how far they go. A lane has one block at the most."""
        seen = Seen() if self._views is None else self._views.route(batch, budget)
        reached = int(offsets[-1] if seen.upto is None else offsets[seen.upto])
        matches = self._router.route(batch)
        rows: list[Row] = []
        for lane, run in _runs(matches.lanes, offsets[matches.events]):
            if lane in seen.entries:
                seen.entries[lane] += [(event, REFERENCE) for event in np.searchsorted(offsets, run).tolist()]
            else:
                rows.append(block(lane, run))
        rows += [_projected(lane, sorted(entries), offsets) for lane, entries in seen.entries.items()]
        rows += [body(int(offsets[event]), digest, data) for event, digest, data in seen.bodies]
        rows += [aside(lane, int(offsets[event]), reason) for event, lane, reason in (*matches.aside, *seen.aside)]
        if self._broken is not None:
            missed = self._broken.route(batch)
            pairs = zip(missed.events.tolist(), missed.lanes.tolist(), strict=True)
            rows += [aside(lane, int(offsets[event]), self._reasons[lane]) for event, lane in pairs]
        rows += _figures(matches)
        return rows, reached


def _figures(matches: Matches) -> Iterator[Row]:
    """What an operator should see rising: it costs time, or somebody their events."""
    if matches.fell_back:
        yield counted("tidings_routed_plainly_total", matches.fell_back)
    reasons = set(matches.blocked.values())
    if reasons and (blocked := sum(one.reason in reasons for one in matches.aside)):
        yield counted("tidings_regex_set_aside_total", blocked)


def _way_of(route: Route, regex: RegexRules) -> Way:
    try:
        passage = passage_of(route, regex)
    except FilterSyntaxError as error:
        return f"its filter cannot be evaluated: {error}"
    if passage.scope is None and passage.projection is None:
        return _spec(route, both(passage.select, passage.filter))
    return View(_spec(route, None), passage)


def _projected(lane: int, entries: Sequence[tuple[int, bytes]], offsets: Any) -> Row:
    """The block of a lane of which some entries have bodies."""
    return block(lane, offsets[[event for event, _ in entries]], b"".join(digest for _, digest in entries))


def _spec(route: Route, parsed: filters.Filter | None) -> RouteSpec:
    return RouteSpec(
        lane=route.lane,
        topics=frozenset(int(topic) for topic in route.topics),
        filter=parsed,
        since=_offset(route.since),
        until=None if route.until is None else _offset(route.until),
    )


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
        before = None if kept is None else kept.routing
        kept = _kept[plan.data] = _Kept(plan, Routing(load_routes(plan), plan.regex, before))
        settle()
    return kept.routing


def load_routes(plan: RoutePlan) -> Sequence[Route]:
    """The routes of the plan. The registry may be newer by now: what came meanwhile holds above the end of the batch."""
    with open_reader(plan.data) as registry:
        return registry.routes(embedded(plan.floor))
