"""What commands print: JSON for programs, tables and sentences for people, plain when there is no terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def print_json(value: Any, *, err: bool = False) -> None:
    """One JSON value on one line, so that a stream of them is NDJSON."""
    print(json.dumps(value, ensure_ascii=False), file=sys.stderr if err else sys.stdout, flush=True)


def say(sentence: str) -> None:
    """A sentence for a person."""
    print(sentence, flush=True)


def print_error(sentence: str) -> None:
    """A sentence about what went wrong."""
    red, plain = ("\x1b[31m", "\x1b[0m") if sys.stderr.isatty() else ("", "")
    print(f"{red}{sentence}{plain}", file=sys.stderr, flush=True)


def print_warnings(answer: Mapping[str, Any]) -> None:
    """Print the warnings of the hub's answer, apart from the answer itself."""
    for sentence in answer.get("warnings") or ():
        print(f"warning: {sentence}", file=sys.stderr, flush=True)


def console() -> Console:
    from rich.console import Console

    return Console(highlight=False, soft_wrap=not sys.stdout.isatty())


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], empty: str) -> None:
    """Rows under their headings; `empty` is said when there are none. When piped, words in a row are never broken."""
    texts = [[_text(cell) for cell in row] for row in rows]
    if not texts:
        say(empty)
    elif sys.stdout.isatty():
        console().print(table(columns, texts))
    else:
        print_plain(columns, texts)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, dense: bool = False) -> Table:
    """A table for a terminal; `dense` leaves the lines out."""
    from rich.box import SIMPLE_HEAD
    from rich.markup import escape
    from rich.table import Table

    made = Table(box=None if dense else SIMPLE_HEAD, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    for column in columns:
        made.add_column(column, overflow="fold")
    for row in rows:
        made.add_row(*(escape(cell) for cell in row))
    return made


def print_plain(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(line[n]) for line in (columns, *rows)) for n in range(len(columns))]
    for line in (columns, *rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def print_document(document: Mapping[str, Any]) -> None:
    """A document as `name: value` lines; what is nested is shown as JSON."""
    width = max((len(key) for key in document), default=0)
    for key, value in document.items():
        if value not in (None, "", {}, []):
            shown = duration_text(value) if key == "retention" else _text(_given(value))
            print(f"{key.ljust(width)}  {shown}")


def duration_text(seconds: float | None) -> str:
    """A duration as it is written in commands and settings."""
    if seconds is None:
        return "default"
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g}{unit}"
    return f"{seconds:g}s"


def _given(value: Any) -> Any:
    """What is nested, without members that say nothing."""
    if not isinstance(value, dict):
        return value
    inner = {name: _given(one) for name, one in value.items()}
    return {name: one for name, one in inner.items() if one not in (None, "", {}, [])}


def _text(value: object) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.1f}"
        case str():
            return value
        case _:
            return json.dumps(value, ensure_ascii=False)
