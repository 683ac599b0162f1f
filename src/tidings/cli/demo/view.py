"""The demo as a live view on a terminal, or as plain lines where there is none."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidings.cli.demo.scene import PUBLISHERS, SUBSCRIBERS, Scene
from tidings.cli.status import lag_table, parts_table
from tidings.cli.terminal.output import table
from tidings.client.http import DEFAULT_URL

if TYPE_CHECKING:
    from rich.console import RenderableType

STARTING: Any = {"ready": False, "parts": {}, "lag": {}, "subscriptions": []}
"""The status before the hub answers."""


def to_try(url: str) -> list[str]:
    """Three commands for a second terminal, as they can be typed in this folder."""
    program = _program()
    where = "" if url == DEFAULT_URL else f" --url {url}"
    return [
        f"{program}{where} status",
        f"{program}{where} tail demo-orders",
        f'{program}{where} publish demo-orders \'{{"total": 250, "region": "EU"}}\'',
    ]


def _program() -> str:
    path = Path(sys.argv[0]).absolute()
    here = Path.cwd()
    return shlex.quote(str(path.relative_to(here))) if path.is_relative_to(here) and path.name == "tidings" else "tidings"


def live(scene: Scene, status: Any) -> RenderableType:
    """The whole view. What a newcomer needs stands at the top, where a small terminal does not cut it off."""
    from rich.columns import Columns
    from rich.console import Group
    from rich.markup import escape
    from rich.text import Text

    state = "[green]ready[/]" if status["ready"] else "[yellow]starting: events wait in the log until Spark is up[/]"
    head = [f"[bold]Tidings demo[/]  {state}  [dim](Ctrl-C stops everything)[/]", f"API page  [bold]{scene.url}/api/docs[/]"]
    head += ["Try next, in a second terminal:", *(f"  [cyan]{escape(line)}[/]" for line in to_try(scene.url))]
    figures = [table(*parts_table(status), dense=True), table(*lag_table(status), dense=True)]
    arrivals = [f"  [dim]{escape(line)}[/]" for line in scene.recent] or ["  [dim]nothing yet[/]"]
    return Group(
        Text.from_markup("\n".join(head) + "\n"),
        Columns(figures, padding=(0, 4)) if status["parts"] else Text("the hub is starting"),
        Text(""),
        table(("publisher", "topic", "published"), _publishers(scene), dense=True),
        Text(""),
        table(("subscriber", "topic", "where", "arrived", "lag"), _subscribers(scene, status), dense=True),
        Text.from_markup("\n[bold]arriving at the callback[/]\n" + "\n".join(arrivals)),
    )


def _publishers(scene: Scene) -> list[tuple[str, ...]]:
    return [(one.name, one.topic, f"{scene.published[one.topic]:,}") for one in PUBLISHERS]


def _subscribers(scene: Scene, status: Any) -> list[tuple[str, ...]]:
    lags = {one["name"]: f"{one['lag']:,}" for one in status["subscriptions"]}
    return [
        (one.name, one.topic, one.where or "", f"{scene.arrived[one.path]:,}", lags.get(one.name, "")) for one in SUBSCRIBERS
    ]


def introduction(url: str) -> list[str]:
    """What is said once where there is no live view."""
    return [f"hub at {url}, API page {url}/api/docs", "try next, in a second terminal:", *(f"  {line}" for line in to_try(url))]


def line(scene: Scene, status: Any) -> str:
    """Everything in one plain line."""
    waiting = [f"{part}: {view['reason']}" for part, view in status["parts"].items() if not view["ready"]]
    state = "ready" if status["ready"] else f"not ready ({'; '.join(waiting) or 'starting'})"
    lags = ", ".join(f"{stage} {lag['events']}" for stage, lag in status["lag"].items())
    arrived = ", ".join(f"{one.name} {scene.arrived[one.path]}" for one in SUBSCRIBERS)
    return f"{state} | published {sum(scene.published.values())} | arrived {arrived} | lag {lags or 'unknown'}"
