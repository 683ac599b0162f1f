"""`tidings publish`: one event from the command line, or many from a file or stdin, one a line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from tidings.cli.events import BATCH_TYPE, Envelope, Line, PublishBatch, as_event, batches, lines_of, refused_line
from tidings.cli.hub_command import Hub, command
from tidings.cli.terminal.output import print_json, say
from tidings.client.http import segment
from tidings.errors import HubProblem, Malformed, NotFound, Rejected
from tidings.ids import random_id


def add_to(app: typer.Typer) -> None:
    """Register publish."""

    @command(app, "publish")
    def publish(
        hub: Hub,
        topic: Annotated[str, typer.Argument(help="Topic to publish to.")],
        data: Annotated[
            str | None, typer.Argument(help="Event to publish: JSON data or a whole CloudEvent; - reads stdin.")
        ] = None,
        file: Annotated[Path | None, typer.Option("--file", "-f", help="File with one event per line (NDJSON).")] = None,
        type: Annotated[str, typer.Option("--type", help="Type of events that have none.")] = "",
        source: Annotated[str, typer.Option("--source", help="Source of events that have none.")] = "/tidings/cli",
        subject: Annotated[str | None, typer.Option("--subject", help="Subject of events that have none.")] = None,
        id: Annotated[str | None, typer.Option("--id", help="Id of a single event; random unless set.")] = None,
        content_type: Annotated[
            str | None, typer.Option("--content-type", help="Content type of the data; JSON unless set.")
        ] = None,
    ) -> None:
        """Publish one event, or every line of a file or of stdin. Returns when all are durable."""
        envelope = Envelope(type or topic.rpartition(":")[2], source, subject, content_type)
        if data is not None and data != "-":
            if file is not None:
                raise Rejected("an event and a file exclude each other", expected="one of them")
            line = Line(1, as_event(data, envelope, random_id, id))
            _send(hub, topic, iter([PublishBatch((line,))]), lambda count: None)
            return
        with _input(file) as (texts, size), _progress(size) as advance:
            _send(hub, topic, batches(lines_of(_counted(texts, advance[0]), envelope, random_id)), advance[1])


def _send(hub: Hub, topic: str, requests: Iterator[PublishBatch], advance: Callable[[int], None]) -> None:
    """Send batch after batch. After a refusal, send nothing more and say what was stored until then."""
    accepted = 0
    try:
        for batch in requests:
            try:
                hub.client.send("POST", f"/api/topics/{segment(topic)}/events", batch.body, content_type=BATCH_TYPE)
            except HubProblem as error:
                raise _refusal(error, batch, accepted) from error
            accepted += len(batch.lines)
            advance(len(batch.lines))
    except Malformed as error:
        raise Malformed(f"{error}; {_so_far(accepted)}") from error
    if hub.json:
        print_json({"accepted": accepted})
    else:
        say(f"{accepted:,} event{'' if accepted == 1 else 's'} accepted")


def _refusal(error: HubProblem, batch: PublishBatch, accepted: int) -> HubProblem:
    number = refused_line(batch, error.problem)
    alone = len(batch.lines) == 1 and accepted == 0
    place = f"line {number} was refused: " if number is not None and not alone else ""
    detail = (error.problem.get("errors") or [{}])[0].get("detail") if place else None
    first, last = batch.lines[0].number, batch.lines[-1].number
    rest = "" if alone else f"; nothing of lines {first} to {last} was stored; {_so_far(accepted)}"
    return HubProblem(f"{place}{detail or error}{rest}", {**error.problem, "accepted": accepted, "line": number})


def _so_far(accepted: int) -> str:
    return f"{accepted:,} events were accepted before"


@contextmanager
def _input(file: Path | None) -> Iterator[tuple[Iterable[str], int | None]]:
    """The lines to read, and their size in bytes where that is known."""
    if file is None:
        if sys.stdin.isatty():
            print("reading events from the terminal, one a line; Ctrl-D ends", file=sys.stderr)
        yield sys.stdin, None
        return
    try:
        with file.open(encoding="utf-8") as source:
            yield source, file.stat().st_size
    except OSError as error:
        raise NotFound(f"the file cannot be read: {error.strerror}", at=str(file)) from error
    except UnicodeDecodeError as error:
        raise Malformed("the file cannot be read: it is not UTF-8", at=str(file)) from error


def _counted(texts: Iterable[str], advance: Callable[[int], None]) -> Iterator[str]:
    for text in texts:
        advance(len(text))
        yield text


@contextmanager
def _progress(size: int | None) -> Iterator[tuple[Callable[[int], None], Callable[[int], None]]]:
    """Two counters, of bytes read and of events accepted, shown as a bar on a terminal."""
    if not sys.stderr.isatty():
        yield (lambda read: None), (lambda count: None)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    columns = (TextColumn("publishing"), BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[accepted]:,} accepted"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("publishing", total=size, accepted=0)
        state = {"read": 0, "accepted": 0}

        def read(count: int) -> None:
            state["read"] += count

        def accepted(count: int) -> None:
            state["accepted"] += count
            bar.update(task, completed=state["read"], accepted=state["accepted"])

        yield read, accepted
