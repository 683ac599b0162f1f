"""Where two dialects decide differently although a filter is written in both, and refusals of what cannot be written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from tidings.errors import FilterSyntaxError
from tidings.filters.algebra import Filter
from tidings.filters.dialects.printer import printed, printed_path
from tidings.filters.paths import DataPath

_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Difference:
    """At this place of the payload, events of this kind are decided differently."""

    place: DataPath
    kind: str

    def __str__(self) -> str:
        return f"{printed_path(self.place)}: {self.kind}"


class Differences:
    """Collects differences while a filter is written; each is told once."""

    def __init__(self) -> None:
        self._found: dict[Difference, None] = {}

    def add(self, place: DataPath, kind: str) -> None:
        """At this place the dialects differ so."""
        self._found[Difference(place, kind)] = None

    def listed(self) -> tuple[Difference, ...]:
        return tuple(self._found)


def refuse(part: Filter, dialect: str, reason: str) -> NoReturn:
    """This part cannot be said in the dialect."""
    text = printed(part)
    found = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    raise FilterSyntaxError(f"this cannot be said in {dialect}: {reason}", at=found)
