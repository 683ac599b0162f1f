"""Why does, or does not, an event reach a subscription? Judged by the versions in force at its position. Nothing is stored."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidings.doors.api_parts import ApiParts
from tidings.errors import Expired, FilterSyntaxError
from tidings.events.model import Event
from tidings.events.stored import event_from
from tidings.log.cursor import cursor_at
from tidings.log.port import Entry
from tidings.log.position import LaneNumber, Position, marks_below, place_before, reached
from tidings.registry.model import ApprovalState, Route, Subscription, Topic

if TYPE_CHECKING:
    from tidings.filters import Explanation


@dataclass(frozen=True, slots=True)
class ExplainQuestion:
    """An event of a topic; `position` and `at` only when it was published."""

    topic: Topic
    event: Event
    entry: Entry | None = None


@dataclass(frozen=True, slots=True)
class RouteVerdict:
    """Whether one subscription gets the event, why in a sentence, and the filter's own explanation where it came to that."""

    subscription: Subscription
    gets: bool
    why: str
    explanation: Explanation | None = None


async def stored(parts: ApiParts, topic: Topic, position: Position) -> ExplainQuestion:
    """The question about a published event. Raises Expired when it is there no more, or never was in this topic."""
    entry = (await parts.events.fetch([position])).get(position)
    if entry is None or entry.topic != topic.number:
        raise Expired(f"there is no event of {topic.name} at this cursor, or it was removed", found=cursor_at(position))
    return ExplainQuestion(topic, event_from(entry.head, entry.data), entry)


async def verdicts(
    parts: ApiParts, question: ExplainQuestion, subscriptions: Sequence[Subscription]
) -> AsyncIterator[RouteVerdict]:
    """The verdict on each of these subscriptions, in their order."""
    routes = await _in_force(parts, question)
    asides = await _asides(parts, question)
    for subscription in subscriptions:
        route = routes.get(subscription.lane)
        reason = asides.get(subscription.lane) or asides.get(None)
        if route is not None and reason is not None and not await _in_lane(parts, question, subscription.lane):
            yield RouteVerdict(subscription, False, f"routing set it aside: {reason}")
        elif route is None:
            yield RouteVerdict(subscription, False, _why_not_in_force(parts, question, subscription))
        else:
            yield _judged(subscription, route, question.event, parts)


async def _asides(parts: ApiParts, question: ExplainQuestion) -> Mapping[LaneNumber | None, str]:
    """Why routing set the event aside, for a lane or (None) for all of them: then it went nowhere, whatever the filter says."""
    if question.entry is None:
        return {}
    position = question.entry.position
    found = await parts.lane_index.asides(place_before(position), 1)
    return {one.lane: one.reason for one in found if one.position == position}


async def _in_lane(parts: ApiParts, question: ExplainQuestion, lane: LaneNumber) -> bool:
    """Whether the lane has the event all the same: what cannot be decided is kept only from lanes that have a filter."""
    if question.entry is None:
        return False
    return (await parts.lanes.find(lane, question.entry.position)).exact


async def _in_force(parts: ApiParts, question: ExplainQuestion) -> Mapping[LaneNumber, Route]:
    if question.entry is None:
        found = [route for route in parts.registry.routes(await parts.events.ends()) if route.until is None]
    else:
        found = [
            route
            for route in parts.registry.routes(marks_below(question.entry.position))
            if holds_at(route, question.entry.position)
        ]
    return {route.lane: route for route in found if question.topic.number in route.topics}


def holds_at(route: Route, position: Position) -> bool:
    """Whether this version of a route was in force at that position."""
    return not reached(route.since, position) and (route.until is None or reached(route.until, position))


def _judged(subscription: Subscription, route: Route, event: Event, parts: ApiParts) -> RouteVerdict:
    # Imported late: the router behind it needs numpy, which nobody who only publishes should wait for.
    from tidings import filters
    from tidings.filters.route_steps import Stop, projected, through
    from tidings.registry.route_steps import passage_of

    try:
        passage = passage_of(route, parts.regex)
    except FilterSyntaxError as error:
        return RouteVerdict(subscription, False, f"its filter cannot be evaluated and its events are set aside: {error}")
    # Only what the scope leaves may be told: the conditions before it look at what the subscriber must not see.
    seen = projected(passage.scope, event)
    stop = through(passage, event, parts.current.schemas)
    if stop in (Stop.SCOPE, Stop.NOT_JSON) or seen is None:
        return RouteVerdict(subscription, False, str(stop))
    if passage.filter is None:
        return RouteVerdict(subscription, True, "it has no filter: every event of its topics goes to it")
    explanation = filters.explain(passage.filter, seen, parts.current.schemas)
    return RouteVerdict(subscription, explanation.matched, str(explanation), explanation)


def _why_not_in_force(parts: ApiParts, question: ExplainQuestion, subscription: Subscription) -> str:
    approval = parts.snapshot.approvals.get((subscription.name, question.topic.name))
    if question.entry is not None and subscription.created > question.entry.at:
        return "it was created after the event was published"
    if approval is not None and approval.state is not ApprovalState.GRANTED:
        return f"its approval for {question.topic.name} is {approval.state.value}"
    return (
        f"it did not take events of {question.topic.name} at that time"
        if question.entry
        else (f"it does not take events of {question.topic.name}")
    )
