"""`tidings tail`: follows a topic."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer

from tidings.cli.hub_command import Hub, command
from tidings.cli.terminal.output import print_json
from tidings.client.http import HubClient, segment

_WAIT = 20
_PAGE = 500


def add_to(app: typer.Typer) -> None:
    """Register tail."""

    @command(app, "tail")
    def tail(
        hub: Hub,
        topic: Annotated[str, typer.Argument(help="Topic to follow.")],
        start: Annotated[
            str, typer.Option("--from", help="Where to begin: first, last, or a cursor that was printed.")
        ] = "last",
        count: Annotated[int | None, typer.Option("--count", "-n", help="Stop after this many events.")] = None,
        as_bytes: Annotated[
            bool, typer.Option("--bytes", help="Avro payloads as the bytes that are stored, not as JSON.")
        ] = False,
        follow: Annotated[bool, typer.Option("--follow/--no-follow", help="Wait for more events.")] = True,
    ) -> None:
        """Print the events of a topic as they come."""
        colored = sys.stdout.isatty()
        for seen, entry in enumerate(entries(hub.client, topic, start, follow=follow, as_bytes=as_bytes), 1):
            print_json(entry) if hub.json else print(shaped(entry, colored=colored), flush=True)
            if count is not None and seen >= count:
                return


def entries(client: HubClient, topic: str, start: str, *, follow: bool, as_bytes: bool = False) -> Any:
    """The entries of a topic after a cursor, one by one; with `follow` it waits for more and never ends."""
    after = {"first": "_first", "last": "_last"}.get(start, start)
    while True:
        query = {"after": after, "limit": _PAGE, "wait": _WAIT if follow else None, "payload": "bytes" if as_bytes else None}
        found = 0
        for line in client.lines(f"/api/topics/{segment(topic)}/events", query):
            after = line["cursor"]
            if "event" in line:
                found += 1
                yield line
        if not found and not follow:
            return


def shaped(entry: Any, *, colored: bool) -> str:
    """One line for a person: time, cursor, event."""
    event = entry["event"]
    dim, bold, plain = ("\x1b[2m", "\x1b[1m", "\x1b[0m") if colored else ("", "", "")
    data = event["data_base64"] if "data_base64" in event else json.dumps(event.get("data"), ensure_ascii=False)
    when = str(entry.get("time") or event.get("time") or "")
    return f"{dim}{when}  {entry['cursor']}{plain}  {bold}{event.get('type', '')}{plain}  {event.get('id', '')}  {data}"
