"""What an environment's documents come to in the core: topics, exposures and subscriptions (HOR-01). Pure.

| in the documents                    | in the core                                                                   |
|-------------------------------------|-------------------------------------------------------------------------------|
| a type that anybody names           | a topic and an exposure, so that nobody can use it past its owner              |
| nobody exposes it                   | its exposure lists nobody; its subscriptions are blocked                       |
| visibility, a scope that is gone    | blocked subscriptions                                                          |
| same team, trusted teams            | `trusted` of the exposure                                                      |
| an additional publisher             | listed, unless it is known to be in another zone (HOR-21)                      |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from tidings.doors.horizon.documents.environment import Environment, Exposing
from tidings.doors.horizon.documents.rovers import RequestedExposure, Rover
from tidings.doors.horizon.documents.settings import DocumentSettings
from tidings.doors.horizon.documents.subscriptions import RequestedSubscription
from tidings.doors.horizon.door import WEEK
from tidings.doors.horizon.layout import HorizonLayout
from tidings.doors.horizon.names import SPECIFIED, subscription_id, subscription_name, team_of, topic_name
from tidings.registry.model import (
    DEFAULT_SCOPE,
    ApprovalMode,
    Delivery,
    Exposure,
    Push,
    Scope,
    Stream,
    Subscription,
    Topic,
    TopicsSource,
)
from tidings.registry.port import Document

"""No copy of a payload of this door is kept longer (HOR-159)."""

NOBODY = "nobody"
"""Stands for the owner of a type that is not exposed."""

_ENVELOPE_BYTES = 64 << 10


def derived(standing: Environment, types: Iterable[str], ground: DocumentSettings) -> list[Document]:
    """The core's documents of these types."""
    return [document for event_type in sorted(types) for document in _of_type(standing, event_type, ground)]


def _of_type(standing: Environment, event_type: str, ground: DocumentSettings) -> Iterator[Document]:
    if not standing.names(event_type):
        return
    yield _topic(standing, event_type, ground)
    yield _exposure(standing, event_type)
    for client, application, wish in standing.subscribing(event_type):
        yield _subscription(standing, client, application, wish, ground)


def _topic(standing: Environment, event_type: str, ground: DocumentSettings) -> Topic:
    found = standing.specifying(event_type)
    return Topic(
        name=topic_name(standing.environment, event_type),
        description="" if found is None else found.description[:4096],
        retention=WEEK,
        max_event_bytes=min(ground.data_bytes + _ENVELOPE_BYTES, 16 << 20),
        duplicates="off",
        schema=None if found is None else found.schema,
        labels={} if found is None else {SPECIFIED: found.version},
    )


def _exposure(standing: Environment, event_type: str) -> Exposure:
    topic = topic_name(standing.environment, event_type)
    found = standing.exposing(event_type)
    if found is None:
        return Exposure(topic=topic, publishers=(), subscribers=(), approval=ApprovalMode.MANUAL)
    owner, application, wish = found
    return Exposure(
        topic=topic,
        publishers=(owner, *(one for one in wish.additional if one != owner and _in_zone(standing, one, application.zone))),
        approval=wish.approval,
        scopes=wish.scopes,
        owner=owner,
        trusted=_trusted(owner, wish),
    )


def _in_zone(standing: Environment, client: str, zone: str) -> bool:
    known = standing.rovers.get(client)
    return known is None or known.zone.lower() == zone.lower()


def _trusted(owner: str, wish: RequestedExposure) -> tuple[str, ...]:
    """The owner's own team, and the teams it trusts; a team without hub is one of the owner's hub."""
    own = team_of(owner)
    teams = [str(own)] if own is not None else []
    for team in wish.trusted:
        teams.append(team if "--" in team or own is None else f"{own.hub}--{team}")
    return tuple(f"{team}--*" for team in dict.fromkeys(teams))


def _subscription(
    standing: Environment, client: str, application: Rover, wish: RequestedSubscription, ground: DocumentSettings
) -> Subscription:
    environment = standing.environment
    name = subscription_id(environment, wish.event_type, client)
    return Subscription(
        name=subscription_name(environment, name),
        source=TopicsSource((topic_name(environment, wish.event_type),)),
        delivery=_delivery(standing, client, application, wish),
        filter=wish.trigger.filter,
        projection=wish.trigger.projection,
        scopes=wish.scopes,
        owner=client,
        retention=wish.retention,
        blocked=blocked(standing, application, wish, ground) or "",
    )


def _delivery(standing: Environment, client: str, application: Rover, wish: RequestedSubscription) -> Delivery:
    exposing = standing.exposing(wish.event_type)
    layout = HorizonLayout(
        environment=standing.environment,
        subscription=subscription_id(standing.environment, wish.event_type, client),
        publisher=NOBODY if exposing is None else exposing[0],
        subscriber=client,
        zone=application.zone,
        payload=wish.payload,
        filtered=_filters(wish.trigger) or any(map(_filters, _applied(exposing, wish))),
    )
    if wish.callback is None:
        return Stream(layout=layout.kept())
    return Push(url=wish.callback, layout=layout.kept(), **msgspec.structs.asdict(wish.wishes))


def _filters(trigger: Scope) -> bool:
    return trigger.filter is not None or trigger.projection is not None


def _applied(exposing: Exposing | None, wish: RequestedSubscription) -> list[Scope]:
    """The publisher's scopes that this subscription gets (HOR-102)."""
    offered = {} if exposing is None else exposing[2].scopes
    return [scope for name, scope in offered.items() if name in (wish.scopes or (DEFAULT_SCOPE,))]


def blocked(standing: Environment, application: Rover, wish: RequestedSubscription, ground: DocumentSettings) -> str | None:
    """Why the subscription gets nothing; None: it may."""
    exposing = standing.exposing(wish.event_type)
    if exposing is None:
        return f"the event type {wish.event_type} is not exposed"
    _, provider, exposure = exposing
    if not _sees(exposure.visibility, provider.zone, application.zone, ground):
        return f"its zone {application.zone} is outside of the visibility {exposure.visibility} of {wish.event_type}"
    gone = [scope for scope in wish.scopes if scope not in exposure.scopes]
    if gone:
        return f"the event type {wish.event_type} has no scope {gone[0]} (any more)"
    return None


def _sees(visibility: str, provider: str, subscriber: str, ground: DocumentSettings) -> bool:
    """HOR-172."""
    match visibility:
        case "zone":
            return provider.lower() == subscriber.lower()
        case "enterprise":
            return subscriber.lower() not in ground.internet_zones
    return True
