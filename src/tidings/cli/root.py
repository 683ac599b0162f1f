"""The tree of commands."""

from __future__ import annotations

from typing import Annotated

import typer

from tidings import __version__
from tidings.cli import (
    apply,
    backup,
    deliveries,
    doctor,
    feed,
    filters,
    listen,
    publish,
    serve,
    status,
    tail,
    topics,
)
from tidings.cli.demo import command as demo
from tidings.cli.hermes import importing as hermes
from tidings.cli.horizon import lists as horizon_lists
from tidings.cli.hub_command import AsJson, Hub, Token, Url, command
from tidings.cli.subscription import approvals, shortcuts, subscriptions
from tidings.cli.terminal.output import print_json, say

app = typer.Typer(
    help="Tidings, an event hub: publish once over HTTP; everyone who asked gets it the way they asked.",
    epilog="Exit codes: 0 done, 1 refused or failed, 2 called wrongly or misconfigured, 3 no hub answers.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        say(__version__)
        raise typer.Exit


@app.callback()
def root(
    ctx: typer.Context,
    url: Url = None,
    token: Token = None,
    json: AsJson = False,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    ctx.obj = Hub().over(url, token, json)


everyday = (topics, subscriptions, deliveries, shortcuts, publish, tail, feed, status, apply, filters, listen)
for group in (*everyday, horizon_lists, hermes, serve, demo, approvals, doctor, backup):
    group.add_to(app)


@command(app, "version", rich_help_panel="Operating")
def version(hub: Hub) -> None:
    """Print the version of this program."""
    print_json({"version": __version__}) if hub.json else say(__version__)
