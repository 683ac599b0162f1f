"""`tidings backup`, `restore` and `renew-log`: write the data folder to one file, and back. They work on files, not over HTTP."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from tidings.cli.hub_command import Hub, command
from tidings.cli.serve import Config, Data, settings_of
from tidings.cli.terminal.output import print_json, say

_PANEL = "Operating"
_MOST_GAPS = 20


def add_to(app: typer.Typer) -> None:
    """Register backup, restore and renew-log."""

    @command(app, "backup", rich_help_panel=_PANEL)
    def backup(
        hub: Hub,
        file: Annotated[Path, typer.Argument(help="File to write, .tar or .tar.gz.")],
        data: Data = None,
        config: Config = None,
        replace: Annotated[bool, typer.Option("--replace", help="Replace the file if it exists.")] = False,
    ) -> None:
        """Copy a whole hub into one file. The hub may be running."""
        from tidings.backup import archive
        from tidings.clock import SystemClock

        folder = settings_of(data=data, config=config).data
        with _progress("copying", archive.size_of(folder)) as advance:
            made = archive.make(folder, file, SystemClock().now(), advance, replace=replace)
        if hub.json:
            print_json({"file": str(file), "at": made.at, "bytes": made.bytes, "files": list(made.files)})
        else:
            say(f"{file}: {len(made.files)} files, {made.bytes / 1e6:,.1f} MB of data as of {made.at}")

    @command(app, "restore", rich_help_panel=_PANEL)
    def restore(
        hub: Hub,
        file: Annotated[Path, typer.Argument(help="File that `tidings backup` wrote.")],
        data: Data = None,
        config: Config = None,
    ) -> None:
        """Restore a backup into an empty or new data folder."""
        from tidings.backup import archive

        folder = settings_of(data=data, config=config).data
        with _progress("restoring", None) as advance:
            found = archive.restore(file, folder, advance)
        if hub.json:
            print_json({"data": str(folder), "at": found.at, "bytes": found.bytes, "files": list(found.files)})
        else:
            say(f"{folder} now holds the hub as of {found.at}; start it with `tidings serve --data {folder}`")

    @command(app, "renew-log", rich_help_panel=_PANEL)
    def renew_log(hub: Hub, data: Data = None, config: Config = None) -> None:
        """Replace the lost or damaged log.db of a stopped hub by a new one, with all events that can still be read.

        Events that cannot be read are lost. Prefer `tidings restore` where there is a recent backup.
        """
        from tidings.backup import renewal
        from tidings.clock import SystemClock

        folder = settings_of(data=data, config=config).data
        made = renewal.renew(folder, SystemClock().now())
        if hub.json:
            print_json({"kept": made.kept, "gaps": list(made.gaps), "begins": made.begins, "movedTo": made.moved_to})
            return
        say(f"a new log with {made.kept} events of the old one; positions go on after {made.begins}")
        for first, last in made.gaps[:_MOST_GAPS]:
            say(f"  positions {first} to {last} could not be read")
        if len(made.gaps) > _MOST_GAPS:
            say(f"  … and {len(made.gaps) - _MOST_GAPS} more gaps")
        if made.moved_to:
            say(f"the old log is now {made.moved_to}; remove it when it is of no more use")


@contextmanager
def _progress(doing: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal; nothing otherwise."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(doing, total=total)
        yield lambda done: bar.advance(task, done)
