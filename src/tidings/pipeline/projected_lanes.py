"""Lanes that get a part of the payload: the publisher's scope, then the consumer's filter on what it leaves, then their projection.

Both filters are routed in batches: the scope's on the events as they are, the consumer's on the stripped ones. Equal
projections of one event are made, sent to the sink and stored once. Agrees with `tidings.filters.route_steps`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any

import msgspec

from tidings.events.avro.payloads import NO_SCHEMAS, SchemaBook
from tidings.events.stored import has_reference, without_reference
from tidings.filters import RE2_ONLY, Filter, RegexRules
from tidings.filters.algebra import all_of
from tidings.filters.payload import is_json
from tidings.filters.projection import Projection, project
from tidings.filters.route_steps import RouteSteps
from tidings.filters.router import Router, RouteSpec, RoutingBatch, SetAside
from tidings.lanes.parts import KEY_BYTES, WHOLE, key_of

SLICE_EVENTS = 500
SLICE_BYTES = 1 << 20
"""How much is stripped at once: all of it is in memory together, once for each scope."""

ENTRY_BYTES = 8 + KEY_BYTES
"""What an entry costs beside its part."""


@dataclass(frozen=True, slots=True)
class View:
    """One route with a projection on its way, in force as `spec` says; `spec.filter` is not looked at."""

    spec: RouteSpec
    passage: RouteSteps


@dataclass(slots=True)
class Seen:
    """Which events go to which lanes with which keys, the parts behind them, and what was set aside.

    `upto`: the last event that was looked at, when the budget did not allow for more.
    """

    entries: dict[int, list[tuple[int, bytes]]] = field(default_factory=lambda: defaultdict(list))
    parts: list[tuple[int, bytes, bytes]] = field(default_factory=list)
    aside: list[SetAside] = field(default_factory=list)
    bytes: int = 0
    upto: int | None = None


class _Kind(msgspec.Struct):
    """What a head says of the payload."""

    datacontenttype: Any = msgspec.UNSET
    base64: Any = msgspec.field(name="$base64", default=False)
    form: Any = msgspec.field(name="$form", default="")


_kind = msgspec.json.Decoder(_Kind).decode


class Views:
    """The compiled form of many views. In its routers a lane stands for the number of a view."""

    def __init__(self, views: Sequence[View], regex: RegexRules = RE2_ONLY, schemas: SchemaBook = NO_SCHEMAS) -> None:
        self._views = views
        self._first = Router(
            [_spec(number, view, _at_first(view.passage)) for number, view in enumerate(views)], regex, schemas
        )
        stripping: dict[Projection, list[RouteSpec]] = defaultdict(list)
        for number, view in enumerate(views):
            if view.passage.scope is not None:
                stripping[view.passage.scope].append(_spec(number, view, view.passage.filter))
        self._stripped = {scope: Router(specs, regex, schemas) for scope, specs in stripping.items()}

    def route(self, batch: RoutingBatch, budget: int) -> Seen:
        """Everything of the batch up to where the budget of bytes is spent; at least one event."""
        seen = Seen()
        found = self._first.route(batch)
        seen.aside += [self._aside(event, number, reason) for event, number, reason in found.aside]
        pairs = sorted(zip(found.events.tolist(), found.lanes.tolist(), strict=True))
        for candidates in _slices(pairs, batch):
            self._look(candidates, batch, budget, seen)
            if seen.upto is not None:
                break
        return seen

    def _look(self, candidates: Mapping[int, list[int]], batch: RoutingBatch, budget: int, seen: Seen) -> None:
        payloads = {event: _Payload(batch.heads[event], batch.datas[event]) for event in candidates}
        dropped = self._dropped(candidates, payloads, batch, seen)
        for event, numbers in candidates.items():
            known: set[bytes] = set()
            for number in numbers:
                if (event, number) not in dropped:
                    self._enter(event, self._views[number], payloads[event], known, seen)
            if seen.bytes > budget:
                seen.upto = event
                return

    def _enter(self, event: int, view: View, payload: _Payload, known: set[bytes], seen: Seen) -> None:
        left = payload.left(view.passage.scope, view.passage.projection)
        if left is None:
            return
        data, part_key = left
        seen.entries[view.spec.lane].append((event, part_key))
        seen.bytes += ENTRY_BYTES
        if part_key != WHOLE and part_key not in known:
            known.add(part_key)
            seen.parts.append((event, part_key, data))
            seen.bytes += len(data)

    def _dropped(
        self, candidates: Mapping[int, list[int]], payloads: Mapping[int, _Payload], batch: RoutingBatch, seen: Seen
    ) -> set[tuple[int, int]]:
        """The candidates whose consumer's filter does not match what the scope left, or cannot be decided."""
        by_scope: dict[Projection, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for event, numbers in candidates.items():
            for number in numbers:
                passage = self._views[number].passage
                if passage.scope is not None and passage.filter is not None:
                    by_scope[passage.scope][event].append(number)
        dropped: set[tuple[int, int]] = set()
        for scope, asked in by_scope.items():
            found = self._filtered(scope, list(asked), payloads, batch, seen)
            dropped |= {(event, number) for event, numbers in asked.items() for number in numbers} - found
        return dropped

    def _filtered(
        self, scope: Projection, events: list[int], payloads: Mapping[int, _Payload], batch: RoutingBatch, seen: Seen
    ) -> set[tuple[int, int]]:
        stripped = [(event, left[0]) for event in events if (left := payloads[event].left(scope, None)) is not None]
        found = self._stripped[scope].route(
            RoutingBatch(
                positions=[batch.positions[event] for event, _ in stripped],
                topics=[batch.topics[event] for event, _ in stripped],
                heads=[_scoped(scope, batch.heads[event]) for event, _ in stripped],
                datas=[data for _, data in stripped],
            )
        )
        seen.aside += [self._aside(stripped[at][0], number, reason) for at, number, reason in found.aside]
        return {(stripped[at][0], number) for at, number in zip(found.events.tolist(), found.lanes.tolist(), strict=True)}

    def _aside(self, event: int, number: int | None, reason: str) -> SetAside:
        return SetAside(event, None if number is None else self._views[number].spec.lane, reason)


class _Payload:
    """One event's payload and what projections leave of it, each worked out once."""

    def __init__(self, head: bytes, data: bytes | None) -> None:
        self._data = data
        self._refers = False
        self._left: dict[tuple[Projection | None, Projection | None], tuple[bytes, bytes] | None] = {}
        try:
            self._kind, self._refers = _kind(head), has_reference(head)
        except (msgspec.MsgspecError, ValueError):
            self._data, self._kind = None, _Kind()

    def left(self, scope: Projection | None, projection: Projection | None) -> tuple[bytes, bytes] | None:
        """What both leave, and its key; None when there is nothing they could choose from."""
        key = (scope, projection)
        if key not in self._left:
            data = self._apply(projection, self._apply(scope, self._data))
            self._left[key] = None if data is None else (data, self._key(data, projected=_chooses(scope, projection)))
        return self._left[key]

    def _key(self, data: bytes, *, projected: bool) -> bytes:
        """A part goes out without the publisher's `dataref`, so one that has it always becomes one."""
        whole = data is self._data and not (projected and self._refers)
        return WHOLE if whole else key_of(data)

    def _apply(self, projection: Projection | None, data: bytes | None) -> bytes | None:
        if projection is None or data is None:
            return data
        kind = self._kind
        return project(projection, data) if is_json(kind.datacontenttype, kind.base64, kind.form) else None


def _scoped(scope: Projection, head: bytes) -> bytes:
    """What a consumer's filter sees of a head: not where the rest of the payload is."""
    return without_reference(head) if scope.paths else head


def _chooses(*projections: Projection | None) -> bool:
    return any(one is not None and one.paths for one in projections)


def _at_first(passage: RouteSteps) -> Filter | None:
    """What can be decided on events as they are: everything, unless the filter must look at what a scope left."""
    return passage.select if passage.scope is not None else both(passage.select, passage.filter)


def both(one: Filter | None, other: Filter | None) -> Filter | None:
    """Both must match; None always does."""
    given = [part for part in (one, other) if part is not None]
    return all_of(*given) if given else None


def _spec(number: int, view: View, filter: Filter | None) -> RouteSpec:
    spec = view.spec
    return RouteSpec(lane=number, topics=spec.topics, filter=filter, since=spec.since, until=spec.until)


def _slices(pairs: list[tuple[int, int]], batch: RoutingBatch) -> Iterator[dict[int, list[int]]]:
    """The views of each event that has any, as many events at a time as are to be stripped together."""
    chosen: dict[int, list[int]] = {}
    size = 0
    for event, group in groupby(pairs, key=itemgetter(0)):
        length = len(batch.datas[event] or b"")
        if chosen and (size + length > SLICE_BYTES or len(chosen) == SLICE_EVENTS):
            yield chosen
            chosen, size = {}, 0
        chosen[event] = [number for _, number in group]
        size += length
    if chosen:
        yield chosen
