"""Reading a topic backwards: its events from the newest down, page by page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from tidings.log.port import Between, Entry, EventLog, Limit
from tidings.log.position import TopicNumber, marks_below

PAGE = Limit(entries=500, bytes=16 << 20)


async def newest(events: EventLog, topic: TopicNumber, between: Between) -> AsyncIterator[Sequence[Entry]]:
    """The topic's entries between marks, newest first."""
    while found := await events.newest(topic, between, PAGE):
        yield found
        between = between._replace(upto=marks_below(found[-1].position))
