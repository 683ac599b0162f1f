"""Decisions, changes, and events that could not be routed: `tidings approvals`, `approve`, `reject`, `changes`, `asides`."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple
from urllib.parse import quote

import typer

from tidings.cli.horizon.lists import print_subscriptions
from tidings.cli.hub_command import AsJson, Hub, Token, Url, command, with_exit_code
from tidings.cli.terminal.output import print_json, print_table, say
from tidings.client.http import segment
from tidings.errors import Malformed

Subscription = Annotated[str, typer.Argument(help="Name of the subscription; for Horizon, its id.")]
Topic = Annotated[str | None, typer.Argument(help="Topic that it asks for; not for Horizon.")]
Environment = Annotated[str | None, typer.Option("--environment", "-e", help="For Horizon: the environment.")]
Reason = Annotated[str, typer.Option("--reason", help="Reason, shown to the owner of the subscription.")]
Approver = Annotated[str, typer.Option("--approver", help="Who decides; for Horizon with open access.")]

_PANEL = "Governing"


approvals = typer.Typer(help="Approvals: who waits for a decision, and what was decided.", invoke_without_command=True)


@approvals.callback()
def _group(ctx: typer.Context, url: Url = None, token: Token = None, json: AsJson = False) -> None:
    hub = (ctx.obj if isinstance(ctx.obj, Hub) else Hub()).over(url, token, json)
    ctx.obj = hub
    if ctx.invoked_subcommand is None:
        with_exit_code(hub, lambda: _show(hub))


@command(approvals, "list")
def listed(
    hub: Hub,
    environment: Environment = None,
    state: Annotated[str | None, typer.Option("--state", help="For Horizon: PENDING (the default), ACTIVE, REJECTED …")] = None,
    event_type: Annotated[str | None, typer.Option("--event-type", help="For Horizon: only this event type.")] = None,
) -> None:
    """List the approvals and their states; with --environment, the subscriptions to your own Horizon event types."""
    if environment is None:
        _show(hub)
        return
    found = hub.client.get(f"/horizon/v1/{segment(environment)}/approvals", {"state": state, "eventType": event_type})
    if hub.json:
        print_json(found)
        return
    print_subscriptions([_with_scopes(one) for one in found["items"]], empty="nothing waits for a decision")


def _with_scopes(item: dict[str, Any]) -> dict[str, Any]:
    """How much is asked for, so that the approver can decide."""
    scopes = f"scopes {', '.join(item['scopes'])}" if item.get("scopes") else ""
    return {**item, "reason": "; ".join(text for text in (item.get("reason"), scopes) if text)}


class Said(NamedTuple):
    """A decision, its reason, and who decided where the hub cannot know."""

    state: str
    reason: str
    approver: str


def approve(
    hub: Hub,
    subscription: Subscription,
    topic: Topic = None,
    environment: Environment = None,
    reason: Reason = "",
    approver: Approver = "",
) -> None:
    """Allow a subscription to get the events of a topic."""
    _decide(hub, subscription, topic, environment, Said("granted", reason, approver))


def reject(
    hub: Hub,
    subscription: Subscription,
    topic: Topic = None,
    environment: Environment = None,
    reason: Reason = "",
    approver: Approver = "",
) -> None:
    """Refuse a subscription the events of a topic."""
    _decide(hub, subscription, topic, environment, Said("rejected", reason, approver))


command(approvals, "approve")(approve)
command(approvals, "reject")(reject)


def add_to(app: typer.Typer) -> None:
    """Register approvals, approve, reject, changes and asides."""

    app.add_typer(approvals, name="approvals", rich_help_panel=_PANEL)
    command(app, "approve", rich_help_panel=_PANEL)(approve)
    command(app, "reject", rich_help_panel=_PANEL)(reject)

    @command(app, "changes", rich_help_panel=_PANEL)
    def changes(
        hub: Hub,
        after: Annotated[int, typer.Option("--after", help="Start after this revision.", min=0)] = 0,
        limit: Annotated[int, typer.Option("--limit", help="Most results to show.", min=1, max=1000)] = 100,
    ) -> None:
        """Show who changed what and when, and from which event on the change holds."""
        found = hub.client.get("/api/changes", {"after": after, "limit": limit})
        if hub.json:
            print_json(found)
            return
        keys = ("revision", "at", "by", "action", "kind", "name", "cursor")
        columns = (*keys[:-1], "holds after")
        print_table(columns, [[one[key] for key in keys] for one in found["changes"]], empty="nothing was changed yet")

    @command(app, "asides", rich_help_panel=_PANEL)
    def asides(
        hub: Hub,
        after: Annotated[str | None, typer.Option("--after", help="Start after this cursor.")] = None,
        limit: Annotated[int, typer.Option("--limit", help="Most results to show.", min=1, max=1000)] = 100,
    ) -> None:
        """Show the events that could not be routed, for which subscription, and why."""
        found = hub.client.get("/api/asides", {"after": after, "limit": limit})
        if hub.json:
            print_json(found)
            return
        keys = ("cursor", "subscription", "reason")
        print_table(keys, [[one[key] for key in keys] for one in found["asides"]], empty="nothing was set aside")


def _show(hub: Hub) -> None:
    found = hub.client.get("/api/approvals")
    if hub.json:
        print_json(found)
        return
    keys = ("subscription", "topic", "state", "reason")
    print_table(keys, [[one[key] for key in keys] for one in found["approvals"]], empty="no topic asks for approval")


def _decide(hub: Hub, subscription: str, topic: str | None, environment: str | None, said: Said) -> None:
    """Decide on a native subscription, by name and topic, or on one of Horizon, by id and environment."""
    if environment is not None:
        path = f"/horizon/v1/{segment(environment)}/subscriptions/{segment(subscription)}/approval"
        decision = "APPROVE" if said.state == "granted" else "REJECT"
        stored = hub.client.post(path, {"decision": decision, "reason": said.reason, "approver": said.approver})
        print_json(stored) if hub.json else say(f"subscription {subscription} to {stored['eventType']} is {_standing(stored)}")
        return
    if topic is None:
        raise Malformed("the topic is missing", expected="a topic, or --environment for a Horizon subscription")
    path = f"/api/approvals/{quote(subscription, safe=':')}/{quote(topic, safe=':')}"
    stored = hub.client.put(path, {"state": said.state, "reason": said.reason})
    print_json(stored) if hub.json else say(f"subscription {subscription} to {topic} is {stored['state']}")


def _standing(subscription: dict[str, Any]) -> str:
    """The state of a Horizon subscription, and who still has to decide."""
    approved = ", ".join(subscription.get("approvedBy") or ())
    if subscription["state"] == "PENDING" and approved:
        return f"PENDING: approved by {approved}, and somebody else has to approve it too"
    return str(subscription["state"])
