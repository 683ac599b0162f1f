"""Events that did not pass a subscription's filters: derived from the versions in force then, never stored (HOR-71, HOR-177)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tidings import filters
from tidings.doors.api_parts import ApiParts
from tidings.doors.explanation import holds_at
from tidings.errors import FilterSyntaxError
from tidings.events.model import Event
from tidings.events.stored import event_from
from tidings.filters.dialects.horizon.trace import invalid_payload_trace, merged_trace, simple_trace, trace
from tidings.filters.event_values import has_json
from tidings.filters.route_steps import RouteSteps, Stop, projected, through
from tidings.log.port import Entry
from tidings.log.position import Position, marks_below
from tidings.registry.model import FilterText, Route, Subscription
from tidings.registry.route_steps import passage_of
from tidings.registry.rules.retention import RetentionPeriod, Retentions

INVALID_PAYLOAD, SCOPE, CONSUMER = "INVALID_PAYLOAD_ERROR", "SCOPE_FILTER_ERROR", "CONSUMER_FILTER_ERROR"
UNREADABLE, EXPIRED = "FILTER_ERROR", "PAYLOAD_EXPIRED"


class Dropped(NamedTuple):
    """Why an event was dropped, and the operators that were tried."""

    result: str
    trace: dict[str, Any] | None = None


class Droppings:
    """Judges events of one subscription. Blocking: call it in a thread. `all_told`: also what a publisher's scopes look at."""

    def __init__(self, parts: ApiParts, subscription: Subscription, oldest: Position, *, all_told: bool) -> None:
        self._routes = [route for route in parts.registry.routes(marks_below(oldest)) if route.lane == subscription.lane]
        self._passages: dict[int, RouteSteps | None] = {}
        self._regex = parts.regex
        self._now = parts.clock.now()
        self._kept: RetentionPeriod = Retentions(parts.snapshot, parts.settings.topics.retention).of(subscription)
        self._all_told = all_told

    def of(self, entry: Entry) -> Dropped | None:
        """Why this event was dropped; None: it was not, or the subscription was not active then."""
        route = next((one for one in self._routes if entry.topic in one.topics and holds_at(one, entry.position)), None)
        if route is None:
            return None
        if self._kept.until(entry.position, entry.at) <= self._now:
            return Dropped(EXPIRED)
        passage = self._passage(route)
        if passage is None:
            return Dropped(UNREADABLE)
        return self._judged(route, passage, event_from(entry.head, entry.data))

    def _passage(self, route: Route) -> RouteSteps | None:
        key = id(route)
        if key not in self._passages:
            try:
                self._passages[key] = passage_of(route, self._regex)
            except FilterSyntaxError:
                self._passages[key] = None
        return self._passages[key]

    def _judged(self, route: Route, passage: RouteSteps, event: Event) -> Dropped | None:
        stop = through(passage, event)
        if not isinstance(stop, Stop):
            return None
        if not has_json(event):
            return Dropped(INVALID_PAYLOAD, invalid_payload_trace())
        match stop:
            case Stop.SCOPE:
                return Dropped(SCOPE, _scope_trace(route.select, passage, event, self._regex) if self._all_told else None)
            case Stop.FILTER:
                seen = projected(passage.scope, event)
                return Dropped(CONSUMER, None if seen is None else _trace(route.filter, passage.filter, seen))
            case Stop.NOT_JSON:
                return Dropped(INVALID_PAYLOAD, invalid_payload_trace())


def _scope_trace(
    select: Sequence[FilterText], passage: RouteSteps, event: Event, regex: filters.RegexRules
) -> dict[str, Any] | None:
    if len(select) == 1:
        return _trace(select[0], passage.select, event)
    parsed = [filters.parse(text.dialect, text.text, regex) for text in select]
    tried = (_trace(text, filter, event) for text, filter in zip(select, parsed, strict=True))
    return merged_trace([one for one in tried if one is not None])


def _trace(text: FilterText | None, filter: filters.Filter | None, event: Event) -> dict[str, Any] | None:
    if text is None or filter is None:
        return None
    told = filters.explain(filter, event)
    return simple_trace(text.text, told) if text.dialect == "horizon-simple" else trace(text.text, told)
