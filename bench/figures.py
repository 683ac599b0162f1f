"""What a benchmark returns, and the one table it is printed in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value. `ratio` sets it against something measured in the same run (`against` says what)."""

    name: str
    value: float
    unit: str
    against: str = ""
    ratio: float | None = None
    aim: str = ""


def table(figures: Iterable[Figure]) -> str:
    """The figures as a Markdown table."""
    lines = ["| figure | measured | ratio | against | aim |", "|---|---:|---:|---|---|"]
    for figure in figures:
        ratio = "" if figure.ratio is None else f"{figure.ratio:.2f}"
        lines.append(f"| {figure.name} | {_number(figure.value)} {figure.unit} | {ratio} | {figure.against} | {figure.aim} |")
    return "\n".join(lines)


def percentile(values: Iterable[float], share: float) -> float:
    """The value below which `share` of the values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
