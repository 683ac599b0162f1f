"""`tidings filter test|convert` and `tidings explain`: whether a filter matches, how other dialects say it, who gets an event."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import typer

from tidings.cli.hub_command import Hub, command
from tidings.cli.terminal.input_text import GIVEN, given, json_in
from tidings.cli.terminal.output import print_json, print_table, print_warnings, say
from tidings.client.http import segment
from tidings.errors import Rejected
from tidings.serve.exit_codes import DONE, FAILED, MISCONFIGURED

filters = typer.Typer(help="Filters: try them before you use them.", no_args_is_help=True)


def add_to(app: typer.Typer) -> None:
    """Register the group `filter` and the command `explain`."""
    app.add_typer(filters, name="filter")
    command(app, "explain")(explain)


@command(filters, "test", failed=MISCONFIGURED)
def test(
    hub: Hub,
    filter: Annotated[str, typer.Argument(metavar="FILTER", help=f"The filter: {GIVEN}.")],
    event: Annotated[str, typer.Argument(metavar="EVENT", help=f"JSON data or a whole CloudEvent: {GIVEN}.")],
    dialect: Annotated[str, typer.Option("--dialect", help="Dialect of the filter, see FILTERS.md.")] = "where",
) -> int:
    """Try a filter on an event, and say why it matches or not.

    Exit code 0: it matches; 1: it does not; 2: the filter is refused, or filter or event cannot be read; 3: no hub answers.
    """
    if filter == event == "-":
        raise Rejected("only one of filter and event can come from stdin")
    chosen = {"filter": {"dialect": dialect, "filter": _filter(given(filter, "the filter"))}}
    found = _asked(hub, "/api/filters/test", {**chosen, **_event(given(event, "the event"))})
    if hub.json:
        print_json(found)
    else:
        say(found["text"])
        print_warnings(found)
    return DONE if found["matches"] else FAILED


@command(filters, "convert", failed=MISCONFIGURED)
def convert(
    hub: Hub,
    filter: Annotated[str, typer.Argument(metavar="FILTER", help=f"The filter: {GIVEN}.")],
    to: Annotated[str, typer.Option("--to", help="vng, cloudevents, cesql, where, horizon, hermes or eventbridge.")],
    dialect: Annotated[
        str,
        typer.Option(
            "--dialect", help="Dialect of the filter; without it, `where`, and with --to vng `logical`: see FILTERS.md."
        ),
    ] = "",
) -> int:
    """Write a filter in another dialect, or say why it cannot be said there.

    Exit code 0: it is written; 2: it cannot be said there, or cannot be read; 3: no hub answers.
    """
    source = dialect or ("logical" if to == "vng" else "where")
    asked = {"dialect": source, "filter": _filter(given(filter, "the filter")), "to": to}
    found = _asked(hub, "/api/filters/convert", asked)
    if hub.json:
        print_json(found)
        return DONE
    written = found["filter"]
    say(written if isinstance(written, str) else msgspec.json.format(msgspec.json.encode(written), indent=2).decode())
    print_warnings({"warnings": [f"decided differently at {difference}" for difference in found["differences"]]})
    return DONE


def explain(
    hub: Hub,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Topic of the event.")],
    event: Annotated[str, typer.Argument(metavar="CURSOR|EVENT", help=f"A cursor such as 0-42, or an event: {GIVEN}.")],
    subscription: Annotated[
        str | None, typer.Option("--subscription", "-s", help="Only this subscription, with the whole reason.")
    ] = None,
) -> int:
    """Say which subscriptions get an event and which do not, and why. For a published event, what was in force then decides."""
    asked: dict[str, Any] = {"cursor": event} if _is_cursor(event) else _event(given(event, "the event"))
    if subscription is not None:
        asked["subscription"] = subscription
    found = _asked(hub, f"/api/topics/{segment(topic)}/explain", asked)
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


def _asked(hub: Hub, path: str, document: dict[str, Any]) -> Any:
    return hub.client.decoded("POST", path, msgspec.json.encode(document))


def _event(text: str) -> dict[str, msgspec.Raw]:
    """The event as it is written: a number keeps all its digits."""
    value = json_in(text, "the event")
    return {"event" if isinstance(value, dict) and "specversion" in value else "data": msgspec.Raw(text.encode())}


def _filter(text: str) -> msgspec.Raw | str:
    """The filter as a JSON value if it is JSON, otherwise as text."""
    if not text.lstrip().startswith(("{", "[")):
        return text.strip()
    json_in(text, "the filter")
    return msgspec.Raw(text.encode())
