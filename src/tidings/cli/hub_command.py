"""How a command is made: its function gets a `Hub` (client and output), and --url, --token and --json are added to it.

Errors of the tree become one sentence on stderr and an exit code; a stack trace never reaches a person.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
import typing
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer

from tidings.client.http import DEFAULT_URL, HubClient
from tidings.errors import HubProblem, HubUnreachable, Misconfigured, TidingsError
from tidings.serve.exit_codes import FAILED, MISCONFIGURED, UNREACHABLE

_PANEL = "Hub options"

MOST_FAULTS = 50

Url = Annotated[
    str | None,
    typer.Option("--url", help=f"Address of the hub; otherwise TIDINGS_URL, or {DEFAULT_URL}.", rich_help_panel=_PANEL),
]
Token = Annotated[str | None, typer.Option("--token", help="Bearer token; otherwise TIDINGS_TOKEN.", rich_help_panel=_PANEL)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.", rich_help_panel=_PANEL)]


@dataclass(slots=True)
class Hub:
    """What a command works with: the connection to the hub, and how to print."""

    url: str = field(default_factory=lambda: os.environ.get("TIDINGS_URL") or DEFAULT_URL)
    token: str | None = field(default_factory=lambda: os.environ.get("TIDINGS_TOKEN") or None)
    json: bool = False
    _client: HubClient | None = None

    @property
    def client(self) -> HubClient:
        """The connection, opened at its first use."""
        if self._client is None:
            self._client = HubClient(self.url, self.token)
        return self._client

    def over(self, url: str | None, token: str | None, as_json: bool) -> Hub:
        """A copy where options given after the command override those given before it."""
        return Hub(url or self.url, token or self.token, as_json or self.json)


def command(
    app: typer.Typer, name: str, *, failed: int = FAILED, **options: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function whose first parameter is the `Hub`. What it returns is the exit code (None: done).

    `failed` is the exit code of what was refused, for a command in which 1 is an answer.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        own = inspect.signature(function, eval_str=True)
        hints = typing.get_type_hints(function, include_extras=True)
        wanted = [p.replace(annotation=hints[p.name]) for p in list(own.parameters.values())[1:]]

        @functools.wraps(function)
        def run(ctx: typer.Context, url: Any, token: Any, json: Any, **given: Any) -> None:
            hub = (ctx.obj if isinstance(ctx.obj, Hub) else Hub()).over(url, token, json)
            with_exit_code(hub, lambda: function(hub, **given), failed)

        context = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
        shared = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)
            for name, kind, default in (("url", Url, None), ("token", Token, None), ("json", AsJson, False))
        ]
        parameters = [context, *(p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in wanted), *shared]
        del run.__wrapped__
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in parameters}
        app.command(name, **options)(run)
        return function

    return register


def with_exit_code(hub: Hub, act: Callable[[], int | None], failed: int = FAILED) -> None:
    """Run a command and exit with its code; print an expected error as one sentence."""
    try:
        code = act()
    except TidingsError as error:
        _tell(error, hub)
        code = exit_code_of(error, failed)
    except KeyboardInterrupt:
        code = 130
    except BrokenPipeError:
        # Whoever read the output has enough of it; nothing may be written to it any more, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = None
    raise typer.Exit(code or 0)


def exit_code_of(error: TidingsError, failed: int = FAILED) -> int:
    """1: refused or failed, unless the command has its own code for it; 2: misconfigured; 3: no hub answers."""
    match error:
        case HubUnreachable():
            return UNREACHABLE
        case Misconfigured():
            return MISCONFIGURED
        case _:
            return failed


def _tell(error: TidingsError, hub: Hub) -> None:
    from tidings.cli.terminal.output import print_error, print_json

    if hub.json:
        problem = dict(error.problem) if isinstance(error, HubProblem) else {}
        print_json({"code": error.code, "detail": str(error)} | problem, err=True)
    else:
        print_error(str(error))
        for line in _faults(error):
            print_error(line)


def _faults(error: TidingsError) -> list[str]:
    """The other faults of a request; the sentence names the first."""
    if not isinstance(error, HubProblem):
        return []
    faults = [fault for fault in error.problem.get("errors") or [] if isinstance(fault, dict)]
    places = [fault.get("attribute") or f"event {fault.get('index')}" for fault in faults]
    lines = [f"  {place}: {fault.get('detail')}" for place, fault in zip(places, faults, strict=True)][1:]
    return lines if len(lines) <= MOST_FAULTS else [*lines[:MOST_FAULTS], f"  … and {len(lines) - MOST_FAULTS} more"]
