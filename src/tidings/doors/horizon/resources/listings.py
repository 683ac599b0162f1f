"""What there is: environments, Rovers, specifications, event types and subscriptions, with states and reasons.

Everybody sees what is theirs, their team's; administrators see all. An event type that is exposed to the world is seen by all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal

from fastapi import APIRouter, Query

from tidings.doors.horizon.callers import Client
from tidings.doors.horizon.documents.apply_results import Telling, rover_status
from tidings.doors.horizon.documents.environment import Environment
from tidings.doors.horizon.names import (
    DEFAULT,
    PREFIX,
    ROVER,
    SPECIFICATION,
    environment_of,
    paper_name,
    subscription_name,
    topic_name,
)
from tidings.doors.horizon.resources.request import AskedBy, HorizonRequest, hub_address
from tidings.doors.horizon.views.states import BLOCKED, exposure_state, shown_state, state_of, topic_of
from tidings.registry.model import Name, Paper, Push, Snapshot, Subscription

router = APIRouter(tags=["listings"])

EVERYONE_SEES = "world"
"""The visibility of event types that are offered to everybody."""

_APPROVALS = {"auto": "AUTO", "manual": "SIMPLE", "four-eyes": "FOUREYES"}


@router.get("/v1/environments")
async def environments(asked: AskedBy) -> dict[str, Any]:
    """The environments where the caller has documents, and how much of it; for administrators, all that are in use."""
    now, default = asked.parts.snapshot, asked.parts.settings.horizon.environment
    items = []
    for environment in environments_seen(now, asked.client, default):
        states = Counter(state_of(now, one).word for one in _subscriptions(now, asked.client, environment))
        items.append(
            {
                "environment": environment,
                **({"alias": default} if environment == DEFAULT != default else {}),
                "rovers": sum(1 for _ in _papers(now, asked.client, environment, ROVER)),
                "specifications": sum(1 for _ in _papers(now, asked.client, environment, SPECIFICATION)),
                "eventTypes": len(_event_types(asked, environment)),
                "subscriptions": dict(sorted(states.items())),
            }
        )
    return {"items": items}


@router.get("/horizon/rover/v1/{environment}/Rover")
async def rovers(asked: AskedBy) -> dict[str, Any]:
    """The caller's Rovers, with where their exposures and subscriptions stand; for administrators, all."""
    now = asked.parts.snapshot
    standing = asked.shelf.standing(now, asked.environment)
    telling = Telling(standing, standing, now, hub_address(asked.parts))
    items = []
    for paper in _papers(now, asked.client, asked.environment, ROVER):
        named = {"name": paper.text["metadata"]["name"], "team": paper.owner, "zone": paper.text["spec"].get("zone")}
        items.append({**named, **rover_status(paper.name.name, telling)})
    return {"items": items}


@router.get("/horizon/rover/v1/{environment}/EventSpecification")
async def specifications(asked: AskedBy) -> dict[str, Any]:
    """The caller's specifications, and who exposes their types; for administrators, all."""
    now = asked.parts.snapshot
    standing = asked.shelf.standing(now, asked.environment)
    items = []
    for paper in _papers(now, asked.client, asked.environment, SPECIFICATION):
        spec = paper.text["spec"]
        exposing = standing.exposing(str(spec.get("type")))
        members = {"eventType": spec.get("type"), "version": spec.get("version"), "description": spec.get("description")}
        publisher = {"publisherId": exposing[0]} if exposing is not None else {}
        items.append({"name": paper.name.name, "team": paper.owner, **members, **publisher})
    return {"items": items}


@router.get("/v1/{environment}/event-types")
async def event_types(asked: AskedBy) -> dict[str, Any]:
    """The event types that the caller's documents name, and those exposed to the world; for administrators, all."""
    return {"items": _event_types(asked, asked.environment)}


@router.get("/v1/{environment}/subscriptions")
async def subscriptions(
    asked: AskedBy,
    state: Literal["ACTIVE", "PENDING", "REJECTED", "BLOCKED"] | None = Query(None, description="Only those in this state."),
    event_type: str | None = Query(None, alias="eventType", description="Only those to this type."),
) -> dict[str, Any]:
    """The caller's subscriptions and those to the caller's event types; for administrators, all."""
    now = asked.parts.snapshot
    items = [
        _subscription(now, one)
        for one in _subscriptions(now, asked.client, asked.environment)
        if event_type in (None, topic_of(one).name) and state in (None, state_of(now, one).word)
    ]
    return {"items": items}


def environments_seen(now: Snapshot, client: Client, default: str) -> list[str]:
    """The environments where a client has documents; for administrators all, but a token of one environment sees only that."""
    own = (name.namespace for name, paper in now.papers.items() if name.namespace.startswith(PREFIX) and _own(client, paper))
    realm = environment_of(client.realm, default) if client.realm else None
    return sorted({environment for namespace in own if realm in (None, environment := namespace.split("/")[1])})


def _papers(now: Snapshot, client: Client, environment: str, kind: str) -> Iterator[Paper]:
    """The documents of one kind that a client sees, by name."""
    namespace = paper_name(environment, kind, "").namespace
    for name, paper in sorted(now.papers.items()):
        if name.namespace == namespace and _own(client, paper):
            yield paper


def _own(client: Client, paper: Paper) -> bool:
    """A Rover is kept under its client id, a specification belongs to the team that wrote it."""
    kind = paper.name.namespace.rpartition("/")[2]
    return client.acts_for(paper.name.name if kind == ROVER else f"{paper.owner}--x")


def _subscriptions(now: Snapshot, client: Client, environment: str) -> list[Subscription]:
    """The subscriptions that a client sees: its own, and those to its event types."""
    namespace = subscription_name(environment, "").namespace
    found = [
        one
        for name, one in now.subscriptions.items()
        if name.namespace == namespace and (client.acts_for(one.owner) or client.acts_for(_publisher(now, topic_of(one))))
    ]
    return sorted(found, key=lambda one: (topic_of(one), one.owner))


def _publisher(now: Snapshot, topic: Name) -> str:
    exposure = now.exposures.get(topic)
    return "" if exposure is None else exposure.owner


def _subscription(now: Snapshot, one: Subscription) -> dict[str, Any]:
    return {
        "subscriptionId": one.name.name,
        "eventType": topic_of(one).name,
        "subscriberId": one.owner,
        "publisherId": _publisher(now, topic_of(one)),
        "deliveryType": "callback" if isinstance(one.delivery, Push) else "server_sent_event",
        **shown_state(state_of(now, one)),
    }


def _event_types(asked: HorizonRequest, environment: str) -> list[dict[str, Any]]:
    now, client = asked.parts.snapshot, asked.client
    standing = asked.shelf.standing(now, environment)
    counts = _counted(now, client, environment)
    specified = {paper.text["spec"].get("type") for paper in _papers(now, client, environment, SPECIFICATION)}
    return [
        _event_type(now, standing, event_type, counts.get(event_type))
        for event_type in standing.event_types
        if event_type in counts or event_type in specified or _offered(standing, event_type, client)
    ]


def _counted(now: Snapshot, client: Client, environment: str) -> dict[str, Counter[str]]:
    """How many subscriptions to each type the client sees, by state."""
    counts: dict[str, Counter[str]] = {}
    for one in _subscriptions(now, client, environment):
        counts.setdefault(topic_of(one).name, Counter())[state_of(now, one).word] += 1
    return counts


def _offered(standing: Environment, event_type: str, client: Client) -> bool:
    exposing = standing.exposing(event_type)
    if exposing is None:
        return client.admin or client.unchecked
    return client.acts_for(exposing[0]) or exposing[2].visibility == EVERYONE_SEES


def _event_type(now: Snapshot, standing: Environment, event_type: str, states: Counter[str] | None) -> dict[str, Any]:
    specified, exposing = standing.specifying(event_type), standing.exposing(event_type)
    shown: dict[str, Any] = {"eventType": event_type}
    if specified is not None:
        shown["version"] = specified.version
    exposure = now.exposures.get(topic_name(standing.environment, event_type))
    if exposing is None or exposure is None:
        shown |= {"state": BLOCKED, "reason": "nobody exposes it"}
    else:
        offer = {"visibility": exposing[2].visibility, "approval": _APPROVALS[exposing[2].approval.value]}
        shown |= {"publisherId": exposing[0], **offer, "scopes": list(exposing[2].scopes)}
        shown |= shown_state(exposure_state(now, exposure))
    return {**shown, "subscriptions": dict(sorted((states or {}).items()))}
