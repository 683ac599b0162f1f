"""`tidings subscribe`, `tidings unsubscribe` and `tidings subscription …`."""

from __future__ import annotations

import json
from typing import Annotated, Any
from urllib.parse import urlencode

import typer

from tidings.cli.deliveries import deliveries
from tidings.cli.horizon.lists import list_subscriptions
from tidings.cli.hub_command import Hub, command
from tidings.cli.subscription import policies
from tidings.cli.subscription.policies import PolicySetting, Preset, settings_in, told
from tidings.cli.terminal.members import Reset, changed, given
from tidings.cli.terminal.output import print_document, print_json, print_table, say
from tidings.client.http import segment
from tidings.errors import HubProblem, NotFound, Rejected

SubscriptionName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the subscription.")]
Limit = Annotated[int, typer.Option("--limit", help="Most results to show.", min=1, max=1000)]

subscriptions = typer.Typer(help="Subscriptions: who gets which events, how.", no_args_is_help=True)


def add_to(app: typer.Typer) -> None:
    """Register subscribe, unsubscribe and the group `subscription`."""
    command(app, "subscribe")(subscribe)
    policies.add_to(subscriptions)
    command(subscriptions, "deliveries")(deliveries)
    app.add_typer(subscriptions, name="subscription")
    command(app, "unsubscribe")(delete)


def subscribe(
    hub: Hub,
    topics: Annotated[list[str], typer.Argument(metavar="TOPIC...", help="Topics to subscribe to.")],
    to: Annotated[str | None, typer.Option("--to", help="Push events to the callback at this address.")] = None,
    where: Annotated[str | None, typer.Option("--where", help="Filter, such as: total > 5 and region = 'EU'.")] = None,
    include: Annotated[
        list[str] | None,
        typer.Option("--include", help="Get only this part of the data, such as total.amount or items.*.name."),
    ] = None,
    exclude: Annotated[list[str] | None, typer.Option("--exclude", help="Get all but this part of the data.")] = None,
    jsonpath: Annotated[
        bool, typer.Option("--jsonpath", help="Read --include and --exclude as JSONPath, such as $.items[0].")
    ] = False,
    scope: Annotated[list[str] | None, typer.Option("--scope", help="Use this scope of the topic.")] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="Name of the subscription; made from the topic unless set.")
    ] = None,
    pull: Annotated[bool, typer.Option("--pull", help="Push nothing: readers fetch the events as a feed.")] = False,
    sse: Annotated[bool, typer.Option("--sse", help="Push nothing: whoever opens the stream gets the events.")] = False,
    retention: Annotated[
        str | None, typer.Option(help='How long after its publishing an event can still be delivered, such as "1d".')
    ] = None,
    binary: Annotated[
        bool | None,
        typer.Option(
            "--binary/--structured", help="Send attributes as headers and data as the body; or everything in the body."
        ),
    ] = None,
    header: Annotated[
        list[str] | None, typer.Option("--header", help="Header to send with every event, 'Name: value'.")
    ] = None,
    sign: Annotated[str | None, typer.Option("--sign", help="Sign deliveries: v1 (shared secret) or v1a (public key).")] = None,
    handshake: Annotated[
        str | None, typer.Option("--handshake", help="Ask the callback for its consent: require, warn or legacy-post.")
    ] = None,
    inflight: Annotated[int | None, typer.Option(help="Most requests on their way at the same time.", min=1)] = None,
    tries: Annotated[int | None, typer.Option(help="Attempts before an event becomes a dead letter.", min=1)] = None,
    preset: Preset = None,
    setting: PolicySetting = None,
    start: Annotated[
        str | None, typer.Option("--start", help="Where a new one begins: now, first, or a time such as 2030-01-31T12:00:00Z.")
    ] = None,
    description: Annotated[str | None, typer.Option(help="What the subscription is for.")] = None,
    reset: Reset = None,
) -> None:
    """Subscribe to topics: push, stream or offer matching events from now on. Called again, it changes what you give."""
    ways = (to is not None) + pull + sse
    if ways > 1 or (not ways and not (name and _stands(hub, name))):
        raise Rejected("a subscription is pushed, streamed or pulled", expected="one of --to URL, --sse, --pull")
    kind = "pull" if pull else "sse" if sse else "push"
    mode = None if binary is None else "binary" if binary else "structured"
    push = {"kind": "push" if ways else None, "url": to, "mode": mode, "headers": _headers(header), "signing": sign}
    wanted: dict[str, Any] = {
        "topics": topics,
        "where": where,
        "project": _projection(include, exclude, jsonpath),
        "scopes": scope or None,
        "retention": retention,
        "delivery": {"kind": kind}
        if kind != "push"
        else given({**push, "inflight": inflight, "tries": tries, "preset": preset}) | settings_in(setting) or None,
        "description": description,
        "handshake": handshake,
        "start": start,
    }
    chosen = name or f"{topics[0]}-{_host(to) if to else kind}"
    stored = hub.client.patch(f"/api/subscriptions/{segment(chosen)}", changed(wanted, reset))
    if hub.json:
        print_json(stored)
        return
    waits = [topic for topic, state in (stored.get("approvals") or {}).items() if state != "granted"]
    say(f"subscription {stored['name']} is there" + (f", waiting for approval of {', '.join(waits)}" if waits else ""))
    for member in _KEPT:
        if stored.get(member) and wanted.get(member) is None and not (member == "filter" and where):
            say(f"it keeps {member} {_short(stored[member])}; --reset {member} drops it")
    for warning in stored.get("warnings") or ():
        say(f"but {warning}")
    if stored.get("consent") == "pending":
        say("deliveries begin when the callback has consented")
    made = stored.get("signing") or {}
    if made.get("secret") or made.get("publicKey"):
        say(f"deliveries are signed; check them with {made.get('secret') or made['publicKey']} (a secret is shown only now)")


def _stands(hub: Hub, name: str) -> bool:
    """Whether there is something to change: then the way that its events go may be left out, and stays."""
    try:
        hub.client.get(f"/api/subscriptions/{segment(name)}")
    except HubProblem as error:
        if error.problem.get("code") != NotFound.code:
            raise
        return False
    return True


_KEPT = ("where", "filter", "project", "scopes", "retention")
"""Members that decide which events come. The command says so when one stays from before."""


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _projection(include: list[str] | None, exclude: list[str] | None, jsonpath: bool) -> dict[str, Any] | None:
    if include and exclude:
        raise Rejected("parts are included or excluded, not both", expected="--include or --exclude")
    paths = given({"include": include or None, "exclude": exclude or None})
    return ({**paths, "syntax": "jsonpath"} if jsonpath and paths else paths) or None


def _host(url: str) -> str:
    """A part of a name from an address: http://127.0.0.1:9000/in → 127.0.0.1-9000-in."""
    plain = url.partition("://")[2].partition("?")[0]
    return "-".join(word for word in "".join(c if c.isalnum() or c in "._" else "-" for c in plain).split("-") if word)


def _headers(texts: list[str] | None) -> dict[str, str] | None:
    pairs = [text.partition(":") for text in texts or ()]
    for name, colon, _ in pairs:
        if not colon or not name.strip():
            raise Rejected("this is no header", found=name, expected="'Name: value'")
    return {name.strip(): value.strip() for name, _, value in pairs} or None


@command(subscriptions, "list")
def list_all(
    hub: Hub,
    environment: Annotated[
        str | None, typer.Option("--environment", "-e", help="Horizon subscriptions of this environment, with their states.")
    ] = None,
    state: Annotated[
        str | None, typer.Option("--state", help="For Horizon: only ACTIVE, PENDING, REJECTED or BLOCKED.")
    ] = None,
    event_type: Annotated[str | None, typer.Option("--event-type", help="For Horizon: only those to this event type.")] = None,
) -> None:
    """List the subscriptions; with --environment, those of Horizon with state and reason."""
    if environment is not None:
        list_subscriptions(hub, environment, state, event_type)
        return
    if state is not None or event_type is not None:
        raise Rejected("--state and --event-type are for Horizon", expected="--environment beside them")
    found = hub.client.get("/api/subscriptions")
    if hub.json:
        print_json(found)
        return
    rows = [(one["name"], source_of(one), filter_of(one), target_of(one)) for one in found["subscriptions"]]
    print_table(
        ("subscription", "topics", "where", "to"), rows, empty="no subscriptions yet: `tidings subscribe TOPIC --to URL`"
    )


def source_of(subscription: Any) -> str:
    """Which topics a subscription is for."""
    return ", ".join(subscription.get("topics") or []) or f"namespace {subscription.get('namespace')}"


def filter_of(subscription: Any) -> str:
    """Its filter as far as it fits a cell."""
    other = subscription.get("filter")
    return subscription.get("where") or (f"{other['dialect']}: {other['filter']}" if other else "")


def target_of(subscription: Any) -> str:
    """Where its events go."""
    delivery = subscription["delivery"]
    return delivery.get("url") or f"({delivery['kind']})"


@command(subscriptions, "show")
def show(hub: Hub, name: SubscriptionName) -> None:
    """Show one subscription and the state of its lane."""
    path = f"/api/subscriptions/{segment(name)}"
    found = {**hub.client.get(path), "lane": hub.client.get(f"{path}/state")}
    print_json(found) if hub.json else print_document(found)


@command(subscriptions, "delete")
def delete(hub: Hub, name: SubscriptionName) -> None:
    """Delete a subscription and everything that was not delivered to it."""
    hub.client.delete(f"/api/subscriptions/{segment(name)}")
    print_json({"deleted": name}) if hub.json else say(f"subscription {name} is gone")


@command(subscriptions, "suspend")
def suspend(hub: Hub, name: SubscriptionName) -> None:
    """Stop delivering; events wait in the lane."""
    _set_state(hub, name, "suspended")


@command(subscriptions, "activate")
def activate(hub: Hub, name: SubscriptionName) -> None:
    """Deliver again from where it stopped."""
    _set_state(hub, name, "active")


def _set_state(hub: Hub, name: str, state: str) -> None:
    done = hub.client.put(f"/api/subscriptions/{segment(name)}/state", {"state": state})
    told(hub, done, f"subscription {name} is {state}")


@command(subscriptions, "rewind")
def rewind(
    hub: Hub,
    name: SubscriptionName,
    to: Annotated[
        str, typer.Option("--to", help="Where to move: first, last, a cursor, or a time such as 2030-01-31T12:00:00Z.")
    ],
) -> None:
    """Move a subscription back or forward in its lane; everything after that place is delivered (again)."""
    place = {"first": "_first", "last": "_last"}.get(to, to)
    done = hub.client.post(f"/api/subscriptions/{segment(name)}/rewind", {"to": place})
    told(hub, done, f"subscription {name} goes on after {to}")


@command(subscriptions, "refill")
def refill(
    hub: Hub,
    name: SubscriptionName,
    start: Annotated[
        str, typer.Option("--from", help="Where it begins: first, a cursor, or a time such as 2030-01-31T12:00:00Z.")
    ],
) -> None:
    """Fill a subscription's lane anew from the log, by its filter of today, also from before it was made."""
    done = hub.client.post(f"/api/subscriptions/{segment(name)}/refill", {"from": start})
    if hub.json:
        print_json(done)
    else:
        say(f"the lane of {name} is filled from {start} on; tidings status shows how far that is")


@command(subscriptions, "redeliver")
def redeliver(
    hub: Hub,
    name: SubscriptionName,
    cursors: Annotated[list[str] | None, typer.Argument(metavar="[CURSOR]...", help="Cursors of the events.")] = None,
    dead_letters: Annotated[bool, typer.Option("--dead-letters", help="All dead letters.")] = False,
) -> None:
    """Send events again, whatever became of them before."""
    if not cursors and not dead_letters:
        raise Rejected("nothing is named to be sent again", expected="cursors, or --dead-letters")
    wanted = {"positions": cursors or [], "deadLetters": dead_letters}
    done = hub.client.post(f"/api/subscriptions/{segment(name)}/redeliver", wanted)
    told(hub, done, "they are sent again")
    if dead_letters and not hub.json:
        left = hub.client.get(f"/api/subscriptions/{segment(name)}/state")["redelivering"]
        if left:
            say(f"{left} are still to be sent; `tidings subscription show {name}` tells how many are left")


@command(subscriptions, "dead-letters")
def dead_letters(
    hub: Hub,
    name: SubscriptionName,
    limit: Limit = 20,
    cursors: Annotated[list[str] | None, typer.Argument(metavar="[CURSOR]...", help="With --drop: forget only these.")] = None,
    drop: Annotated[bool, typer.Option("--drop", help="Forget the dead letters at these cursors, or all.")] = False,
) -> None:
    """Show the events that will not be tried again unless asked."""
    path = f"/api/subscriptions/{segment(name)}/dead-letters"
    if drop:
        named = urlencode([("position", cursor) for cursor in cursors or []])
        told(hub, hub.client.delete(f"{path}?{named}" if named else path), "the dead letters are gone")
        return
    if cursors:
        raise Rejected("cursors say which dead letters to forget", expected="--drop; `deliveries` shows one event")
    found = hub.client.get(path, {"limit": limit})
    if hub.json:
        print_json(found)
        return
    rows = [(one["lastAt"], one["cursor"], one["tries"], one["reason"], one["event"]) for one in found["deadLetters"]]
    print_table(("last tried", "cursor", "tries", "reason", "event"), rows, empty="no dead letters")
