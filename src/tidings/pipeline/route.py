"""What is done: the entries of a range in, runs of lane entries out. The same for closed ranges and for live steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from tidings import filters
from tidings.errors import FilterSyntaxError
from tidings.events.avro.payloads import SchemaBook
from tidings.filters import RE2_ONLY, RegexRules
from tidings.filters.router import Matches, Router, RouteSpec, RoutingBatch
from tidings.lanes.parts import WHOLE
from tidings.log.port import Limit
from tidings.log.position import START, Partition
from tidings.log.ranges import Columns, Range, RangeReader
from tidings.pipeline.projected_lanes import Seen, View, Views, both
from tidings.pipeline.routed_rows import ENTRIES, RoutedRow, aside, counted, entries, merged, part, size, span
from tidings.pipeline.routes import EncodedRoute, decode_route
from tidings.registry.model import Route
from tidings.registry.route_steps import passage_of

_PAGE = Limit(entries=5000, bytes=8 << 20)


def route_range(routing: Routing, reader: RangeReader, wanted: Range, budget: int) -> Iterator[RoutedRow]:
    """What comes of the entries of a closed range, as far as the budget allows, and how far that is.

    `budget` bounds the bytes of lane entries and bodies: past it, routing stops and says how far it came.
    """
    assert wanted.upto is not None
    runs: list[RoutedRow] = []
    spent, reached = 0, int(wanted.upto)
    for page in reader.pages(wanted, _PAGE):
        rows, reached = route_page(routing, page, budget - spent)
        spent += sum(map(size, rows))
        runs += [row for row in rows if row.kind == ENTRIES]
        yield from (row for row in rows if row.kind != ENTRIES)
        if spent > budget or reached < page.offsets[-1]:
            break
        reached = int(wanted.upto)
    yield from (row for _, row in merged(runs))
    yield span(wanted.after, reached)


def route_page(routing: Routing, page: Columns, budget: int) -> tuple[list[RoutedRow], int]:
    """The rows of these entries, and how far they go: less than all of them when bodies spent the budget."""
    batch = RoutingBatch(positions=page.offsets, topics=page.topics, heads=page.heads, datas=page.datas)
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
    """The compiled routes of one revision, for positions of one partition.

    Routes whose stored filter no longer parses set their events aside, with the reason. `before`: the routing of an earlier
    revision. What both have in common is taken over, so that one changed subscription among thousands costs little. `schemas`:
    Avro schemas that events may be written by, beside those that `before` knows.
    """

    def __init__(
        self,
        routes: Iterable[EncodedRoute],
        partition: Partition,
        regex: RegexRules = RE2_ONLY,
        before: Routing | None = None,
        schemas: Iterable[str] = (),
    ) -> None:
        known = {} if before is None else before._ways
        self._schemas: SchemaBook = SchemaBook() if before is None else before._schemas
        self._schemas.add(schemas)
        self._ways: dict[EncodedRoute, Way] = {}
        broken, self._reasons = list[RouteSpec](), dict[int, str]()
        for encoded in routes:
            way = known.get(encoded)
            if way is None:
                way = _way_of(decode_route(encoded), partition, regex)
            self._ways[encoded] = way
            if isinstance(way, str):
                route = decode_route(encoded)
                broken.append(_spec(route, partition, None))
                self._reasons[int(route.lane)] = way
        specs = [way for way in self._ways.values() if isinstance(way, RouteSpec)]
        views = [way for way in self._ways.values() if isinstance(way, View)]
        self._router: Router = Router(specs, regex, self._schemas) if before is None else before._router.updated(specs)
        self._views = Views(views, regex, self._schemas) if views else None
        self._broken = Router(broken) if broken else None

    def route(self, batch: RoutingBatch, offsets: Any, budget: int) -> tuple[list[RoutedRow], int]:
        """Rows for every match and for everything set aside, and how far they go. A lane has one run at the most."""
        seen = Seen() if self._views is None else self._views.route(batch, budget)
        reached = int(offsets[-1] if seen.upto is None else offsets[seen.upto])
        matches = self._router.route(batch)
        rows: list[RoutedRow] = []
        for lane, run in _runs(matches.lanes, offsets[matches.events]):
            if lane in seen.entries:
                seen.entries[lane] += [(event, WHOLE) for event in np.searchsorted(offsets, run).tolist()]
            else:
                rows.append(entries(lane, run))
        rows += [_projected(lane, sorted(found), offsets) for lane, found in seen.entries.items()]
        rows += [part(int(offsets[event]), key, data) for event, key, data in seen.parts]
        rows += [aside(lane, int(offsets[event]), reason) for event, lane, reason in (*matches.aside, *seen.aside)]
        if self._broken is not None:
            missed = self._broken.route(batch)
            pairs = zip(missed.events.tolist(), missed.lanes.tolist(), strict=True)
            rows += [aside(lane, int(offsets[event]), self._reasons[lane]) for event, lane in pairs]
        rows += _figures(matches)
        return rows, reached


def _figures(matches: Matches) -> Iterator[RoutedRow]:
    """What an operator should see rising: it costs time, or somebody their events."""
    if matches.fell_back:
        yield counted("tidings_routed_plainly_total", matches.fell_back)
    reasons = set(matches.blocked.values())
    if reasons and (blocked := sum(one.reason in reasons for one in matches.aside)):
        yield counted("tidings_regex_set_aside_total", blocked)


def _way_of(route: Route, partition: Partition, regex: RegexRules) -> Way:
    try:
        passage = passage_of(route, regex)
    except FilterSyntaxError as error:
        return f"its filter cannot be evaluated: {error}"
    if passage.scope is None and passage.projection is None:
        return _spec(route, partition, both(passage.select, passage.filter))
    return View(_spec(route, partition, None), passage)


def _projected(lane: int, found: Sequence[tuple[int, bytes]], offsets: Any) -> RoutedRow:
    """The run of a lane of which some entries are parts."""
    return entries(lane, offsets[[event for event, _ in found]], b"".join(key for _, key in found))


def _spec(route: Route, partition: Partition, parsed: filters.Filter | None) -> RouteSpec:
    return RouteSpec(
        lane=route.lane,
        topics=frozenset(int(topic) for topic in route.topics),
        filter=parsed,
        since=int(route.since.get(partition, START)),
        until=None if route.until is None else int(route.until.get(partition, START)),
    )
