"""`tidings status`: the hub at a glance. Exit code 0 only when every part is ready."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidings.cli.hub_command import Hub, command
from tidings.cli.terminal.output import console, print_json, print_plain, table
from tidings.serve.exit_codes import DONE, FAILED

if TYPE_CHECKING:
    from rich.console import Group

Rows = tuple[tuple[str, ...], list[tuple[str, ...]]]


def add_to(app: typer.Typer) -> None:
    """Register status."""

    @command(app, "status")
    def status(
        hub: Hub,
        watch: Annotated[bool, typer.Option("--watch", "-w", help="Refresh every second until Ctrl-C.")] = False,
    ) -> int:
        """Show which parts are ready, the lag of each stage, and every subscription. Exit code 1: a part is not ready."""
        found = hub.client.get("/api/status")
        if hub.json:
            print_json(found)
        elif watch:
            _watch(hub, found)
        elif sys.stdout.isatty():
            console().print(shown(found))
        else:
            for columns, rows in tables(found):
                print_plain(columns, rows)
                print()
        return DONE if found["ready"] else FAILED


def _watch(hub: Hub, found: Any) -> None:
    from rich.live import Live

    with Live(shown(found), console=console(), auto_refresh=False) as live:
        while True:
            time.sleep(1)
            live.update(shown(hub.client.get("/api/status")), refresh=True)


def shown(found: Any) -> Group:
    """The status as tables below each other."""
    from rich.console import Group

    return Group(*(table(columns, rows) for columns, rows in tables(found) if rows))


def tables(found: Any) -> list[Rows]:
    """Parts, stages, subscriptions."""
    return [parts_table(found), lag_table(found), subscriptions_table(found)]


def parts_table(found: Any) -> Rows:
    """Which parts are ready, and why not."""
    rows: list[tuple[str, ...]] = [
        (part, "ready" if view["ready"] else "not ready", view["reason"]) for part, view in found["parts"].items()
    ]
    return ("part", "state", "why"), rows


def lag_table(found: Any) -> Rows:
    """How far each stage is behind."""
    modes = {"routing": _routing(found["routing"])}
    rows: list[tuple[str, ...]] = [
        (stage, f"{lag['events']:,}", f"{lag['seconds']:.1f} s", modes.get(stage, "")) for stage, lag in found["lag"].items()
    ]
    return ("stage", "events waiting", "oldest", "mode"), rows


def _state(one: Any) -> str:
    """The state, and how much of the lane is filled while it is being filled."""
    share = one.get("refill")
    return f"{one['state']}" if share is None else f"{one['state']}, {share:.0%} filled"


def _routing(view: Any) -> str:
    step = view["stepSeconds"]
    return f"{view['mode']}" if step is None else f"{view['mode']}, {step * 1000:,.1f} ms a step"


def subscriptions_table(found: Any) -> Rows:
    """Every subscription and how its lane is doing."""
    keys = ("lag", "delivered", "failedAttempts", "deadLetters")
    rows = [(one["name"], _state(one), *(f"{one[key]:,}" for key in keys), one["lastError"]) for one in found["subscriptions"]]
    return ("subscription", "state", "lag", "delivered", "failed tries", "dead letters", "last error"), rows
