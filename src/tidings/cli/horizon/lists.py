"""Lists of the Horizon door: `tidings rover list`, and the same for specifications, event types and environments."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tidings.cli.hub_command import Hub, command
from tidings.cli.terminal.fitted_table import print_fitted
from tidings.cli.terminal.output import print_json
from tidings.client.http import segment

Environment = Annotated[str, typer.Option("--environment", "-e", help="Horizon environment.")]

_PANEL = "Horizon"
_NO_DOCUMENTS = "no documents in {}: `tidings apply --environment {} FILE`, or look at `tidings environment list`"

rovers = typer.Typer(help="Rovers: what applications expose and subscribe to.", no_args_is_help=True)
specifications = typer.Typer(help="EventSpecifications of event types.", no_args_is_help=True)
event_types = typer.Typer(help="Event types, and who exposes them.", no_args_is_help=True)
environments = typer.Typer(help="Environments that are in use.", no_args_is_help=True)


def add_to(app: typer.Typer) -> None:
    """Register the groups `rover`, `specification`, `event-type` and `environment`."""
    groups = {"rover": rovers, "specification": specifications, "event-type": event_types, "environment": environments}
    for name, group in groups.items():
        app.add_typer(group, name=name, rich_help_panel=_PANEL)


@command(rovers, "list")
def list_rovers(hub: Hub, environment: Environment = "default") -> None:
    """List applications, and which of their entries are not ACTIVE and why."""
    found = hub.client.get(f"/horizon/rover/v1/{segment(environment)}/Rover")
    if hub.json:
        print_json(found)
        return
    rows = [
        (one["clientId"], one.get("zone") or "", str(len(one["exposures"])), str(len(one["subscriptions"])), _attention(one))
        for one in found["items"]
    ]
    columns = ("application", "zone", "exposes", "subscribes", "not active")
    print_fitted(columns, rows, _NO_DOCUMENTS.format(environment, environment), below=1)


def _attention(rover: Any) -> str:
    """The entries of an application that are not active, and why."""
    parts = (one for one in (*rover["exposures"], *rover["subscriptions"]) if one["state"] != "ACTIVE")
    return "; ".join(f"{one['eventType']} {stated(one)}" for one in parts)


def stated(one: Any) -> str:
    """A state with its reason."""
    return f"{one['state']}: {one['reason']}" if one.get("reason") else str(one["state"])


@command(specifications, "list")
def list_specifications(hub: Hub, environment: Environment = "default") -> None:
    """List specifications and who exposes their types."""
    found = hub.client.get(f"/horizon/rover/v1/{segment(environment)}/EventSpecification")
    if hub.json:
        print_json(found)
        return
    keys = ("name", "eventType", "version")
    rows = [
        [*(str(one.get(key) or "") for key in keys), one.get("publisherId") or "(nobody)", one.get("description") or ""]
        for one in found["items"]
    ]
    columns = ("specification", "event type", "version", "exposed by", "description")
    print_fitted(columns, rows, _NO_DOCUMENTS.format(environment, environment), below=1)


@command(event_types, "list")
def list_event_types(hub: Hub, environment: Environment = "default") -> None:
    """List your event types and those exposed to the world, with their states."""
    found = hub.client.get(f"/horizon/v1/{segment(environment)}/event-types")
    if hub.json:
        print_json(found)
        return
    rows = [
        (
            one["eventType"],
            one["state"],
            one.get("publisherId") or "(nobody)",
            one.get("visibility") or "",
            counted(one["subscriptions"]),
            one.get("reason") or "",
        )
        for one in found["items"]
    ]
    columns = ("event type", "state", "exposed by", "visibility", "subscriptions", "reason")
    print_fitted(columns, rows, _NO_DOCUMENTS.format(environment, environment), below=1)


@command(environments, "list")
def list_environments(hub: Hub) -> None:
    """List the environments that are in use."""
    found = hub.client.get("/horizon/v1/environments")
    if hub.json:
        print_json(found)
        return
    rows = [
        (
            f"{one['environment']} ({one['alias']})" if one.get("alias") else one["environment"],
            *(str(one[key]) for key in ("rovers", "specifications", "eventTypes")),
            counted(one["subscriptions"]),
        )
        for one in found["items"]
    ]
    columns = ("environment", "rovers", "specifications", "event types", "subscriptions")
    print_fitted(columns, rows, "no environment is in use: `tidings apply --environment NAME FILE`")


def list_subscriptions(hub: Hub, environment: str, state: str | None, event_type: str | None) -> None:
    """The subscriptions of an environment, for `tidings subscription list --environment`."""
    query = {"state": state, "eventType": event_type}
    found = hub.client.get(f"/horizon/v1/{segment(environment)}/subscriptions", query)
    if hub.json:
        print_json(found)
        return
    print_subscriptions(found["items"], empty=f"no such subscriptions in {environment}")


def print_subscriptions(items: list[Any], empty: str) -> None:
    """Subscriptions with their states, reasons, and the ids that other commands need."""
    keys = ("state", "eventType", "subscriberId", "deliveryType", "subscriptionId", "reason")
    rows = [[str(one.get(key) or "") for key in keys] for one in items]
    columns = ("state", "event type", "subscriber", "delivery", "subscription", "reason")
    print_fitted(columns, rows, empty, below=2)


def counted(states: dict[str, int]) -> str:
    """How many are in which state, in words."""
    return ", ".join(f"{count} {state}" for state, count in states.items()) or "none"
