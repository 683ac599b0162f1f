"""Where rows go: the lanes. Idempotent by position: what the lanes have already is dropped, whatever is written again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tidings.lanes.sink import Aside, LaneRun, LaneSink, Part, PartKey, Routed
from tidings.log.position import START, LaneNumber, Marks, Offset, Partition, Position
from tidings.observe.part_status import PartStatus
from tidings.pipeline.filling_starts import begin_wanted
from tidings.pipeline.routed_rows import ASIDE, COUNTED, ENTRIES, PART, SCANNED, RoutedRange, RoutedRow, merged
from tidings.pipeline.routes import Routes
from tidings.registry.rules.fills import WantedFill


class RoutedSink:
    """Writes what routing found, as far as it is without a gap. Called by one thread only."""

    def __init__(self, lanes: LaneSink, routes: Routes, board: PartStatus) -> None:
        self._lanes = lanes
        self._routes = routes
        self._board = board
        self._fills: Mapping[LaneNumber, WantedFill] = {}

    def routed(self) -> Marks:
        """How far routing is durable."""
        return self._lanes.routed()

    def write(self, found: Sequence[RoutedRange]) -> Marks:
        """Write it; how far routing is durable now."""
        self._begin_fillings()
        begun = self._lanes.routed()
        for partition in {one.partition for one in found}:
            rows = [row for one in found if one.partition == partition for row in one.rows]
            self._write(partition, rows, begun.get(partition, START))
        return self._lanes.routed()

    def _begin_fillings(self) -> None:
        """What was found was routed by this table of routes or an older one: what that asks to be filled begins first."""
        fills = self._routes.fills
        if fills is not self._fills:
            begin_wanted(self._lanes, fills)
            self._fills = fills

    def set_aside(self, position: Position, reason: str) -> None:
        """The event at this position cannot be routed; routing goes on behind it."""
        aside = Aside(position, None, reason)
        self._lanes.write(Routed(runs=(), scanned={position.partition: position.offset}, aside=(aside,)))
        self._board.count("tidings_set_aside_total")

    def _write(self, partition: Partition, rows: Sequence[RoutedRow], begun: Offset) -> None:
        routed = routed_of(partition, rows, begun)
        if routed is None:
            return
        scanned = routed.scanned[partition]
        self._lanes.write(routed)
        self._board.count("tidings_routed_total", scanned - begun)
        self._board.count("tidings_lane_entries_total", sum(run.count for run in routed.runs))
        self._board.count("tidings_set_aside_total", len(routed.aside))
        for row in rows:
            if row.kind == COUNTED and row.reason is not None:
                self._board.count(row.reason, row.first)


def routed_of(partition: Partition, rows: Sequence[RoutedRow], begun: Offset) -> Routed | None:
    """What is to be written of rows that follow `begun`; None: none of them does."""
    scanned = _without_gap(rows, begun)
    if scanned == begun:
        return None
    return Routed(
        runs=list(_runs(partition, rows, scanned)),
        scanned={partition: scanned},
        aside=list(_asides(partition, rows, scanned)),
        parts=list(_parts(partition, rows, scanned)),
    )


def _without_gap(rows: Sequence[RoutedRow], begun: Offset) -> Offset:
    """How far the scanned ranges follow each other from `begun` on."""
    scanned = begun
    for first, last in sorted((row.first, row.last) for row in rows if row.kind == SCANNED):
        if first <= scanned:
            scanned = Offset(max(scanned, last))
    return scanned


def _runs(partition: Partition, rows: Sequence[RoutedRow], upto: int) -> Iterator[LaneRun]:
    for lane, row in merged(row for row in rows if row.kind == ENTRIES and row.first <= upto):
        yield LaneRun(
            lane=LaneNumber(lane),
            partition=partition,
            first=Offset(row.first),
            last=Offset(row.last),
            count=row.entries,
            offsets=row.offsets,
            keys=row.keys,
        )


def _parts(partition: Partition, rows: Sequence[RoutedRow], upto: int) -> Iterator[Part]:
    for row in rows:
        if row.kind == PART and row.first <= upto:
            yield Part(PartKey(Position(partition, Offset(row.first)), row.keys or b""), row.data or b"")


def _asides(partition: Partition, rows: Sequence[RoutedRow], upto: int) -> Iterator[Aside]:
    for row in rows:
        if row.kind == ASIDE and row.first <= upto:
            lane = None if row.lane is None else LaneNumber(row.lane)
            yield Aside(Position(partition, Offset(row.first)), lane, row.reason or "")
