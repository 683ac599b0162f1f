"""`tidings filter test` and `tidings explain`: does this filter match that event, who gets an event, and why?"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from tidings.cli.command import Hub, command
from tidings.cli.show import print_json, print_table, print_warnings, say
from tidings.client.http import segment
from tidings.errors import Malformed, Rejected
from tidings.serve.exit_codes import DONE, FAILED

filters = typer.Typer(help="Filters: try them before they are used.", no_args_is_help=True)

_GIVEN = "inline, the name of a file, or - for stdin"


def add_to(app: typer.Typer) -> None:
    """Register the group `filter` and the command `explain`."""
    app.add_typer(filters, name="filter")
    command(app, "explain")(explain)


@command(filters, "test")
def test(
    hub: Hub,
    filter: Annotated[str, typer.Argument(metavar="FILTER", help=f"The filter: {_GIVEN}.")],
    event: Annotated[str, typer.Argument(metavar="EVENT", help=f"JSON data or a whole CloudEvent: {_GIVEN}.")],
    dialect: Annotated[str, typer.Option("--dialect", help="How the filter is written, see FILTERS.md.")] = "where",
) -> int:
    """Try a filter on an event and see why. Exit code 0: it matches; 1: it does not."""
    if filter == event == "-":
        raise Rejected("only one of filter and event can come from stdin")
    chosen = {"filter": {"dialect": dialect, "filter": _value(_given(filter))}}
    found = hub.client.post("/api/filters/test", {**chosen, **_event(_given(event))})
    if hub.json:
        print_json(found)
    else:
        say(found["text"])
        print_warnings(found)
    return DONE if found["matches"] else FAILED


def explain(
    hub: Hub,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic of the event.")],
    event: Annotated[str, typer.Argument(metavar="CURSOR|EVENT", help=f"A cursor such as 0-42, or an event: {_GIVEN}.")],
    subscription: Annotated[
        str | None, typer.Option("--subscription", "-s", help="Only this one, with the whole reason.")
    ] = None,
) -> int:
    """Say which subscriptions get an event and which do not, and why. A published event is judged by what was in force then."""
    asked: dict[str, Any] = {"cursor": event} if _is_cursor(event) else _event(_given(event))
    if subscription is not None:
        asked["subscription"] = subscription
    found = hub.client.post(f"/api/topics/{segment(topic)}/explain", asked)
    if hub.json:
        print_json(found)
    elif subscription is not None:
        say(found["verdicts"][0]["why"])
    else:
        rows = [(each["subscription"], "gets it" if each["gets"] else "does not", each["why"]) for each in found["verdicts"]]
        print_table(("subscription", "verdict", "why"), rows, "there are no subscriptions")
    return DONE


def _is_cursor(text: str) -> bool:
    partition, dash, offset = text.partition("-")
    return bool(dash) and partition.isdigit() and offset.isdigit()


def _given(text: str) -> str:
    """What stands there, what the file of that name holds, or what comes on stdin."""
    if text == "-":
        return sys.stdin.read()
    # A filter or an event may be longer than any file name.
    if len(text) < 1000 and "\n" not in text and (path := Path(text)).is_file():
        return path.read_text("utf-8")
    return text


def _event(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise Malformed(f"the event is no JSON: {error}", found=text) from error
    return {"event": value} if isinstance(value, dict) and "specversion" in value else {"data": value}


def _value(text: str) -> Any:
    """A filter as JSON where it is written so; the others are plain text."""
    if not text.lstrip().startswith(("{", "[")):
        return text.strip()
    try:
        return json.loads(text)
    except ValueError as error:
        raise Malformed(f"the filter is no JSON: {error}", found=text) from error
