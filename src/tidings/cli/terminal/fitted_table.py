"""Tables that fit the terminal: what does not fit beside the rest stands below its row, and long cells are folded."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence

from tidings.cli.terminal.output import print_plain, say

GAP = 2
LEAST = 8
"""Fewest characters of a column, however narrow the terminal is."""


def print_fitted(columns: Sequence[str], rows: Iterable[Sequence[str]], empty: str, below: int = 0) -> None:
    """Rows under their headings; `empty` is said when there are none.

    On a terminal too narrow for all columns the last `below` of them stand below each row. When piped, a row is one line.
    """
    texts = [list(row) for row in rows]
    if not texts:
        say(empty)
    elif not sys.stdout.isatty():
        print_plain(columns, texts)
    else:
        for line in fitted(columns, texts, below, shutil.get_terminal_size().columns):
            say(line)


def fitted(columns: Sequence[str], rows: Sequence[Sequence[str]], below: int, width: int) -> list[str]:
    """The lines of a table, none of them longer than `width`."""
    widths = _natural(columns, rows)
    if _total(widths) <= width:
        below = 0
    beside = len(columns) - below
    widths = _narrowed(widths[:beside], width)
    lines = _folded(columns[:beside], widths)
    for row in rows:
        lines += _folded(row[:beside], widths)
        for text in row[beside:]:
            lines += textwrap.wrap(text, width, initial_indent="    ", subsequent_indent="      ")
    return lines


def _natural(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(len(row[n]) for row in (columns, *rows)) for n in range(len(columns))]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _narrowed(widths: Sequence[int], width: int) -> list[int]:
    """Column widths that fit: the widest columns shrink first."""
    found = list(widths)
    while _total(found) > width and max(found) > LEAST:
        found[found.index(max(found))] -= 1
    return found


def _folded(cells: Sequence[str], widths: Sequence[int]) -> list[str]:
    """One row as lines: a cell that is too long goes on in the next line."""
    pieces = [[cell[at : at + width] for at in range(0, len(cell), width)] for cell, width in zip(cells, widths, strict=True)]
    height = max(1, *(len(column) for column in pieces))
    lines = []
    for n in range(height):
        parts = [(column[n] if n < len(column) else "").ljust(width) for column, width in zip(pieces, widths, strict=True)]
        lines.append((" " * GAP).join(parts).rstrip())
    return lines
