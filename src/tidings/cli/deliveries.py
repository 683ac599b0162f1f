"""`tidings deliveries` and `tidings trace`: what became of a subscription's events, and of one event."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tidings.cli.hub_command import Hub, command
from tidings.cli.terminal.output import print_document, print_json, print_table, say
from tidings.client.http import segment
from tidings.errors import NotFound, Rejected

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the subscription.")]

LISTED = ("cursor", "published", "state", "tries", "at", "status", "durationMs", "cause")
FACTS = ("at", "state", "tries", "target", "status", "durationMs", "cause")


def add_to(app: typer.Typer) -> None:
    """Register both at the top."""
    command(app, "deliveries", rich_help_panel="Subscriptions")(deliveries)
    command(app, "trace")(trace)


def deliveries(
    hub: Hub,
    name: Name,
    delivery: Annotated[
        str | None, typer.Argument(metavar="[ID|CURSOR]", help="Show this delivery with all its attempts.")
    ] = None,
    state: Annotated[
        list[str] | None,
        typer.Option(
            "--state", help="Only this state: delivered, dead, expired, retrying, waiting, processed, redelivering, …"
        ),
    ] = None,
    event: Annotated[str | None, typer.Option("--event", help="Only the event with this id or cursor.")] = None,
    since: Annotated[
        str | None, typer.Option("--from", help="Only events published at or after this time, such as 2030-01-31T12:00:00Z.")
    ] = None,
    until: Annotated[str | None, typer.Option("--to", help="Only events published before this time.")] = None,
    limit: Annotated[int, typer.Option("--limit", help="Most results to show.", min=1, max=1000)] = 20,
) -> None:
    """Show what became of a subscription's events, newest first; with an id or cursor, everything about one."""
    path = f"/api/subscriptions/{segment(name)}/deliveries"
    if delivery is not None:
        _show_one(hub, hub.client.get(f"{path}/{segment(delivery)}"))
        return
    query = {"state": state, "event": event, "from": since, "to": until, "limit": limit}
    found = hub.client.get(path, {key: value for key, value in query.items() if value is not None})
    if hub.json:
        print_json(found)
        return
    columns = ("event", "published", "state", "tries", "last", "status", "ms", "cause")
    print_table(columns, [[one.get(key) for key in LISTED] for one in found["deliveries"]], empty="nothing was delivered yet")
    if found["records"]["limitedBy"] == "bytes":
        say(f"records before {found['records']['since']} had to go: they took more room than push.records_bytes")


def _show_one(hub: Hub, found: Any) -> None:
    if hub.json:
        print_json(found)
        return
    history = found.pop("history")
    print_document(found)
    print_table(
        ("at", "state", "try", "target", "status", "ms", "cause"), [_cells(one) for one in history], empty="no attempts"
    )


def _cells(fact: Any) -> list[object]:
    return [fact.get(key) for key in FACTS]


def trace(
    hub: Hub,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Name of the topic.")],
    cursor: Annotated[str | None, typer.Argument(metavar="[CURSOR]", help="Cursor of the event.")] = None,
    event_id: Annotated[
        str | None, typer.Option("--id", help="Id of the event, instead of the cursor; the hub searches the log.")
    ] = None,
    since: Annotated[str, typer.Option("--from", help="Where the search begins: a cursor or a time.")] = "_first",
) -> None:
    """Show what became of an event: when it was accepted, who got it, and every attempt."""
    if (cursor is None) == (event_id is None):
        raise Rejected("one event is needed", expected="a cursor or --id")
    path = f"/api/topics/{segment(topic)}"
    cursor = cursor if cursor is not None else _found(hub, path, event_id or "", since)
    found = hub.client.get(f"{path}/events/{segment(cursor)}/trace")
    if hub.json:
        print_json(found)
        return
    print_document({**(found["published"] or {}), "cursor": found["cursor"], "routed": found["routed"]})
    rows = [
        (one["subscription"], one["delivery"]["state"], *_cells(fact)[:3], *_cells(fact)[4:])
        for one in found["deliveries"]
        for fact in one["delivery"]["history"] or [{"at": None}]
    ]
    columns = ("subscription", "now", "at", "fact", "try", "status", "ms", "cause")
    print_table(columns, rows, empty="no subscription got it: `tidings explain` says why")


def _found(hub: Hub, path: str, event_id: str, after: str) -> str:
    """The cursor of the event with this id: the hub searches a part at a time."""
    while True:
        found = hub.client.get(f"{path}/find", {"id": event_id, "after": after})
        if found["cursor"] is not None:
            return str(found["cursor"])
        if found["end"]:
            raise NotFound(f"no event has the id {event_id}")
        after = found["reached"]
