"""`tidings subscription policy|breaker|disable|enable`: how a subscription is delivered, and what stops its delivery."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tidings.cli.hub_command import Hub, command
from tidings.cli.subscription.policy_settings import in_words
from tidings.cli.terminal.input_text import json_in
from tidings.cli.terminal.members import given
from tidings.cli.terminal.output import print_document, print_json, say
from tidings.client.http import segment
from tidings.errors import Malformed, Rejected

Preset = Annotated[
    str | None,
    typer.Option("--preset", help="Preset of the delivery policy: default, horizon, hermes, hermes-batch, vng or cloudevents."),
]
PolicySetting = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="A member of the delivery policy, such as rate=5 or ordering=strict; rate=null goes back to the preset.",
    ),
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the subscription.")]


def add_to(app: typer.Typer) -> None:
    """Register these commands below the group `subscription`."""
    command(app, "policy")(policy)
    command(app, "breaker")(breaker)
    command(app, "disable")(disable)
    command(app, "enable")(enable)


def settings_in(given: list[str] | None) -> dict[str, Any]:
    """KEY=VALUE texts as members. A value that is JSON is read as JSON, any other as a text."""
    members: dict[str, Any] = {}
    for text in given or []:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise Rejected("not a setting", found=text, expected="KEY=VALUE")
        try:
            members[key.strip()] = json_in(value, key.strip())
        except Malformed:
            members[key.strip()] = value
    return members


def policy(hub: Hub, name: Name, preset: Preset = None, setting: PolicySetting = None) -> None:
    """Show the delivery policy of a subscription; with --preset or --set, change it from the next attempt on."""
    path = f"/api/subscriptions/{segment(name)}/policy"
    wanted = given({"preset": preset}) | settings_in(setting)
    found = hub.client.patch(path, wanted) if wanted else hub.client.get(path)
    if hub.json:
        print_json(found)
        return
    print_document(in_words(found["inForce"]))
    kept = [key for key, value in found["wished"].items() if value not in (None, {}) and key not in (*wanted, "preset")]
    if preset is not None and kept:
        say(f"it keeps what was set over the preset: {', '.join(kept)}; --set {kept[0]}=null drops it")


def breaker(
    hub: Hub, name: Name, close: Annotated[bool, typer.Option("--close", help="Close it, and send what waits now.")] = False
) -> None:
    """Show the circuit breaker of a subscription, or close it."""
    path = f"/api/subscriptions/{segment(name)}"
    if close:
        told(hub, hub.client.post(f"{path}/breaker/close", {}), f"the breaker of {name} is closed")
        return
    found = hub.client.get(f"{path}/state")["breaker"]
    if hub.json:
        print_json(found)
    elif found is None:
        say("it never opened")
    else:
        print_document(found)


def disable(hub: Hub, name: Name) -> None:
    """Stop sending until the subscription is enabled; events wait in the lane."""
    done = hub.client.put(f"/api/subscriptions/{segment(name)}/state", {"state": "disabled"})
    told(hub, done, f"subscription {name} is disabled")


def enable(
    hub: Hub, name: Name, from_now: Annotated[bool, typer.Option("--from-now", help="Skip what waits in the lane.")] = False
) -> None:
    """Send again, from where it stopped or from now on."""
    wanted = {"state": "enabled", "from": "now" if from_now else "stop"}
    done = hub.client.put(f"/api/subscriptions/{segment(name)}/state", wanted)
    told(hub, done, f"subscription {name} is enabled")


def told(hub: Hub, done: Any, sentence: str) -> None:
    """Print the result of a command to delivery."""
    if hub.json:
        print_json(done)
    else:
        say(sentence if done["applied"] else f"{sentence}, as soon as delivery comes to it")
