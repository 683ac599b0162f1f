"""Commands for an emergency, without the word `subscription`: dead-letters, redeliver, refill, rewind, rotate-secret."""

from __future__ import annotations

from typing import Annotated

import typer

from tidings.cli.hub_command import Hub, command
from tidings.cli.subscription import subscriptions
from tidings.cli.terminal.output import print_json, say
from tidings.client.http import segment


def add_to(app: typer.Typer) -> None:
    """Register the shortcuts, and `subscription rotate-secret`."""
    for name, body in {
        "dead-letters": subscriptions.dead_letters,
        "redeliver": subscriptions.redeliver,
        "refill": subscriptions.refill,
        "rewind": subscriptions.rewind,
    }.items():
        command(app, name, rich_help_panel="Subscriptions")(body)
    command(subscriptions.subscriptions, "rotate-secret")(rotate_secret)


def rotate_secret(
    hub: Hub,
    name: subscriptions.SubscriptionName,
    grace: Annotated[str, typer.Option("--grace", help="How long the old key signs too, up to 7d.")] = "24h",
) -> None:
    """Make a new signing key for a subscription's deliveries; it is shown once."""
    made = hub.client.post(f"/api/subscriptions/{segment(name)}/secret/rotate", {"grace": grace})
    if hub.json:
        print_json(made)
        return
    say(made["secret"] or made["publicKey"])
    if made["oldKeyUntil"]:
        say(f"the old key signs too until {made['oldKeyUntil']}")
