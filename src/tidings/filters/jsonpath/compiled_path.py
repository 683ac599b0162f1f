"""What a compiled path is, what it finds, and the shape of the steps it is made of.

A step takes one value and hands every value it selects to the step after it; the last one keeps them. So nothing is built
between two steps, and the order is that of the document.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from tidings.filters.jsonpath.work import Work

Flavor: TypeAlias = Literal["rfc9535", "jayway"]
Location: TypeAlias = tuple[str | int, ...]
"""Member names and indexes from the outside in."""

Place: TypeAlias = tuple[Any, str | int | tuple[str, ...]] | None
"""A location while it is being walked: the place around it and the last step, or None for the root or for no place at all."""

ABSENT: Final = object()
"""What a query stands for that found nothing."""

NOWHERE: Final[Place] = (None, ())
"""The place of a value that a function made."""


class Lost(Exception):
    """The path cannot be followed in this document. Never leaves this package."""


class PathRun:
    """One evaluation: the document, the work it may do, and what it need not work out again."""

    __slots__ = ("memo", "root", "work")

    def __init__(self, root: object, work: Work) -> None:
        self.root = root
        self.work = work
        self.memo: dict[object, Any] = {}


Hits: TypeAlias = list[tuple[object, Place]]
Step: TypeAlias = Callable[[object, Place, PathRun, Hits], None]
Test: TypeAlias = Callable[[object, PathRun], bool]
Operand: TypeAlias = Callable[[object, PathRun], object]
"""What a comparison looks at, for the value that a predicate is tried on; ABSENT when there is nothing."""


def keep(value: object, place: Place, run: PathRun, hits: Hits) -> None:
    """The step after the last one."""
    hits.append((value, place))


def remembered(operand: Operand) -> Operand:
    """The operand of the whole document, worked out once in an evaluation."""

    def once(current: object, run: PathRun) -> object:
        if operand not in run.memo:
            run.memo[operand] = operand(run.root, run)
        run.work.spend()
        return run.memo[operand]

    return once


@dataclass(frozen=True, slots=True)
class FoundNodes:
    """What a path found. `missing`: it can lead to one place only, or into one, and that is not there.

    `values` and `locations` have the same length, except that several members picked together are one value (an object)
    at several locations, and that what a function made is nowhere.
    """

    hits: tuple[tuple[object, Place], ...] = ()
    missing: bool = False

    @property
    def values(self) -> tuple[object, ...]:
        return tuple([value for value, _ in self.hits])

    @property
    def locations(self) -> tuple[Location, ...]:
        """Where the values are in the document."""
        return tuple([location for _, place in self.hits for location in _locations(place)])


def _locations(place: Place) -> list[Location]:
    if place is None or not isinstance(place[1], tuple):
        return [_flat(place)]
    around = _flat(place[0])
    return [(*around, name) for name in place[1]]


def _flat(place: Place) -> Location:
    steps: list[str | int] = []
    while place is not None:
        place, step = place
        assert not isinstance(step, tuple)
        steps.append(step)
    return tuple(reversed(steps))


@dataclass(frozen=True, slots=True)
class CompiledPath:
    """What a grammar makes of a text."""

    step: Step
    definite: bool
    singular: Location | None
