"""`tidings topic …`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tidings.cli.hub_command import Hub, command
from tidings.cli.terminal.input_text import json_in
from tidings.cli.terminal.members import Reset, changed, given
from tidings.cli.terminal.output import duration_text, print_document, print_json, print_table, say
from tidings.client.http import segment
from tidings.errors import Malformed, NotFound

TopicName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the topic.")]

topics = typer.Typer(help="Topics: what publishers publish to.", no_args_is_help=True)


def add_to(app: typer.Typer) -> None:
    """Register the group `topic`."""
    app.add_typer(topics, name="topic")


@command(topics, "create")
def create(
    hub: Hub,
    name: TopicName,
    description: Annotated[str | None, typer.Option(help="What the topic is about.")] = None,
    retention: Annotated[str | None, typer.Option(help='How long events are kept at least, such as "7d".')] = None,
    max_event_bytes: Annotated[str | None, typer.Option(help='Largest event, such as "64KiB".')] = None,
    duplicates: Annotated[str | None, typer.Option(help='Duplicate check: "off", a window such as "24h", "forever".')] = None,
    schema: Annotated[Path | None, typer.Option(help="File with a JSON Schema for the data of events.")] = None,
    avro: Annotated[
        Path | None, typer.Option(help="File with an Avro schema: payloads are Avro, and may be published as JSON.")
    ] = None,
    compatibility: Annotated[
        str | None, typer.Option(help='What a new Avro schema must agree with: "backward", "forward", "full", "none".')
    ] = None,
    partitions: Annotated[int | None, typer.Option(help="Partitions of its feed; only for a new topic.")] = None,
    feed: Annotated[
        Path | None, typer.Option(help="JSON file with settings of its feed: versions, aliases, v1Data and so on.")
    ] = None,
    reset: Reset = None,
) -> None:
    """Create a topic, or change the members that you give; the others stay."""
    settings = read_json(feed) if feed else {}
    if not isinstance(settings, dict):
        raise Malformed("the file holds no settings of a feed", at=str(feed), expected='an object such as {"versions": "v2"}')
    wanted = {
        "description": description,
        "retention": retention,
        "maxEventBytes": max_event_bytes,
        "duplicates": duplicates,
        "schema": read_json(schema) if schema else None,
        "avro": given({"schema": read_json(avro) if avro else None, "compatibility": compatibility}) or None,
        "feed": settings | given({"partitions": partitions}) or None,
    }
    stored = hub.client.patch(f"/api/topics/{segment(name)}", changed(wanted, reset))
    print_json(stored) if hub.json else say(f"topic {stored['name']} is there")


@command(topics, "list")
def list_all(hub: Hub) -> None:
    """List the topics."""
    found = hub.client.get("/api/topics")
    if hub.json:
        print_json(found)
    else:
        rows = [(one["name"], duration_text(one.get("retention")), one.get("description", "")) for one in found["topics"]]
        print_table(("topic", "retention", "description"), rows, empty="no topics yet: `tidings topic create NAME`")


@command(topics, "show")
def show(hub: Hub, name: TopicName) -> None:
    """Show one topic."""
    found = hub.client.get(f"/api/topics/{segment(name)}")
    print_json(found) if hub.json else print_document(found)


@command(topics, "delete")
def delete(
    hub: Hub,
    name: TopicName,
    force: Annotated[bool, typer.Option("--force", help="Delete it even when subscriptions name it.")] = False,
) -> None:
    """Delete a topic; nobody can read its events any more."""
    hub.client.delete(f"/api/topics/{segment(name)}", {"force": True} if force else None)
    print_json({"deleted": name}) if hub.json else say(f"topic {name} is gone")


def read_json(file: Path) -> Any:
    """The JSON document in a file."""
    try:
        return json_in(file.read_text("utf-8"), "the file", str(file))
    except OSError as error:
        raise NotFound(f"the file cannot be read: {error.strerror}", at=str(file)) from error
    except UnicodeDecodeError as error:
        raise Malformed("the file cannot be read: it is not UTF-8", at=str(file)) from error
