"""The way of an event to a subscription: the publisher's scope selects and projects, then the consumer filters and projects.

This is the plain reading, one event at a time, for explaining. Routing does the same in batches and must agree with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import msgspec

from tidings.events.avro.payloads import NO_SCHEMAS, SchemaBook
from tidings.events.model import Event
from tidings.events.stored import DATAREF
from tidings.filters.algebra import Filter
from tidings.filters.matches import matches
from tidings.filters.payload import is_json
from tidings.filters.projection import Projection, project


@dataclass(frozen=True, slots=True)
class RouteSteps:
    """What stands between the events of a topic and a subscription; None lets everything through as it is."""

    select: Filter | None = None
    scope: Projection | None = None
    filter: Filter | None = None
    projection: Projection | None = None


class Stop(StrEnum):
    """Where an event was held back (HOR-67, HOR-68)."""

    SCOPE = "the publisher's scope does not let it through"
    FILTER = "the filter does not match"
    NOT_JSON = "the payload is no JSON, so no part of it can be chosen"


def through(passage: RouteSteps, event: Event, book: SchemaBook = NO_SCHEMAS) -> Event | Stop:
    """The event as the subscription gets it, or what held it back."""
    if passage.select is not None and not matches(passage.select, event, book):
        return Stop.SCOPE
    scoped = projected(passage.scope, event)
    if scoped is None:
        return Stop.NOT_JSON
    if passage.filter is not None and not matches(passage.filter, scoped, book):
        return Stop.FILTER
    return projected(passage.projection, scoped) or Stop.NOT_JSON


def projected(projection: Projection | None, event: Event) -> Event | None:
    """The event with what the projection leaves of its payload; None: there is nothing it could choose from."""
    if projection is None or not projection.paths:
        return event
    json = event.data is not None and is_json(event.attributes.get("datacontenttype"), event.base64, event.form)
    left = project(projection, event.data or b"") if json else None
    if left is None:
        return None
    # What is left out must not be found by its address either.
    attributes = {name: value for name, value in event.attributes.items() if name != DATAREF}
    return msgspec.structs.replace(event, attributes=attributes, data=left)
