"""`tidings filter test`: does this filter match that event, and why?"""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer

from tidings.cli.command import Hub, command
from tidings.cli.show import print_json, say
from tidings.errors import Malformed, Rejected
from tidings.serve.exit_codes import DONE, FAILED

filters = typer.Typer(help="Filters: try them before they are used.", no_args_is_help=True)


def add_to(app: typer.Typer) -> None:
    """Register the group `filter`."""
    app.add_typer(filters, name="filter")


@command(filters, "test")
def test(
    hub: Hub,
    event: Annotated[str, typer.Argument(metavar="EVENT", help="JSON data or a whole CloudEvent; - reads stdin.")],
    where: Annotated[str | None, typer.Option("--where", help="Condition, such as: total > 5 and region = 'EU'.")] = None,
    dialect: Annotated[str | None, typer.Option("--dialect", help="Another dialect, with --filter.")] = None,
    filter: Annotated[str | None, typer.Option("--filter", help="The filter in that dialect, as JSON or plain text.")] = None,
) -> int:
    """Try a filter on an event. Exit code 0: it matches; 1: it does not."""
    if (where is None) == (filter is None) or (dialect is None) != (filter is None):
        raise Rejected("a filter is needed", expected="--where, or --dialect and --filter")
    chosen: dict[str, Any] = {"where": where} if filter is None else {"filter": {"dialect": dialect, "filter": _value(filter)}}
    found = hub.client.post("/api/filters/test", {**chosen, **_event(sys.stdin.read() if event == "-" else event)})
    print_json(found) if hub.json else say(found["text"])
    return DONE if found["matches"] else FAILED


def _event(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise Malformed(f"the event is no JSON: {error}", found=text) from error
    return {"event": value} if isinstance(value, dict) and "specversion" in value else {"data": value}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
