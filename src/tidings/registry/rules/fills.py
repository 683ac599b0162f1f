"""What fills a lane from the log: the routes of its subscription as they would have been from the beginning of the filling on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from tidings.log.position import START, LaneNumber, Marks, TopicNumber
from tidings.registry.model import LaneFill, Route


class WantedFill(msgspec.Struct, frozen=True):
    """A filling that a subscription asks for. `since`: from where on routing sees to the lane itself.

    Without `routes` there is nothing yet that the subscription may have, and the filling waits.
    """

    lane: LaneNumber
    fill: LaneFill
    since: Marks
    routes: tuple[Route, ...]


def wanted_fill(lane: LaneNumber, fill: LaneFill, asked: Marks, routes: Sequence[Route]) -> WantedFill:
    """The filling that was asked for at these marks, by the routes of its lane.

    For each topic, the first route that was in force then or later holds also for what came before it.
    """
    standing = sorted((route for route in routes if not _ended(route, asked)), key=lambda route: sorted(route.since.items()))
    if not standing:
        return WantedFill(lane, fill, asked, ())
    since = {part: max(offset, asked.get(part, START)) for part, offset in standing[0].since.items()}
    return WantedFill(lane, fill, {**asked, **since}, (*standing, *_extended(standing, fill.marks)))


def _extended(standing: Sequence[Route], after: Marks) -> Iterator[Route]:
    """Each route once more, for what came before it, and for the topics that no earlier one has."""
    known: set[TopicNumber] = set()
    for route in standing:
        topics = route.topics - known
        known |= topics
        if topics and any(after.get(part, START) < offset for part, offset in route.since.items()):
            yield msgspec.structs.replace(route, topics=topics, since=after, until=route.since)


def _ended(route: Route, marks: Marks) -> bool:
    """Whether a route holds nowhere beyond these marks."""
    return route.until is not None and all(offset <= marks.get(part, START) for part, offset in route.until.items())
