"""Who decided what, and what could not be routed: `tidings approvals`, `approve`, `reject`, `changes`, `asides`."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

import typer

from tidings.cli.command import Hub, command
from tidings.cli.show import print_json, print_table, say

Subscription = Annotated[str, typer.Argument(help="Name of the subscription.")]
Topic = Annotated[str, typer.Argument(help="The topic it asks for.")]
Reason = Annotated[str, typer.Option("--reason", help="Why, for the owner to read.")]

_PANEL = "Governing"


def add_to(app: typer.Typer) -> None:
    """Register approvals, approve, reject, changes and asides."""

    @command(app, "approvals", rich_help_panel=_PANEL)
    def approvals(hub: Hub) -> None:
        """List the approvals and where they stand."""
        found = hub.client.get("/api/approvals")
        if hub.json:
            print_json(found)
            return
        keys = ("subscription", "topic", "state", "reason")
        print_table(keys, [[one[key] for key in keys] for one in found["approvals"]], empty="no topic asks for approval")

    @command(app, "approve", rich_help_panel=_PANEL)
    def approve(hub: Hub, subscription: Subscription, topic: Topic, reason: Reason = "") -> None:
        """Let a subscription have the events of a topic."""
        _decide(hub, subscription, topic, "granted", reason)

    @command(app, "reject", rich_help_panel=_PANEL)
    def reject(hub: Hub, subscription: Subscription, topic: Topic, reason: Reason = "") -> None:
        """Refuse a subscription the events of a topic."""
        _decide(hub, subscription, topic, "rejected", reason)

    @command(app, "changes", rich_help_panel=_PANEL)
    def changes(
        hub: Hub,
        after: Annotated[int, typer.Option("--after", help="Revision to go on after.", min=0)] = 0,
        limit: Annotated[int, typer.Option("--limit", help="How many at the most.", min=1, max=1000)] = 100,
    ) -> None:
        """Show who changed what, when, and from which event on it holds."""
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
        after: Annotated[str | None, typer.Option("--after", help="Cursor to go on after.")] = None,
        limit: Annotated[int, typer.Option("--limit", help="How many at the most.", min=1, max=1000)] = 100,
    ) -> None:
        """Show the events that could not be routed, to whom, and why."""
        found = hub.client.get("/api/asides", {"after": after, "limit": limit})
        if hub.json:
            print_json(found)
            return
        keys = ("cursor", "subscription", "reason")
        print_table(keys, [[one[key] for key in keys] for one in found["asides"]], empty="nothing was set aside")


def _decide(hub: Hub, subscription: str, topic: str, state: str, reason: str) -> None:
    path = f"/api/approvals/{quote(subscription, safe=':')}/{quote(topic, safe=':')}"
    stored = hub.client.put(path, {"state": state, "reason": reason})
    print_json(stored) if hub.json else say(f"subscription {subscription} to {topic} is {state}")
