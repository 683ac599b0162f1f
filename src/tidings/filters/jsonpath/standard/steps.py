"""The steps of RFC 9535: what each selector picks, in the order of the document.

| written | selects |
|---|---|
| `.name` `['name']` | that member of an object |
| `[1]` `[-1]` | that element of an array, counted from its end when negative |
| `[1:5:2]` | elements of an array, backwards when the last number is negative |
| `.*` `[*]` | all members, all elements |
| `[?…]` | the members or elements for which the expression holds |
| `..` before one of them | the same in the value and in everything inside it |
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from tidings.filters.jsonpath.compiled_path import ABSENT, Hits, Location, PathRun, Place, Step, Test, keep
from tidings.filters.jsonpath.work import Work

_MAX_INDEX = 10**9


@dataclass(frozen=True, slots=True)
class Wild:
    """Everything in it."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """What passes a test."""

    test: Test


Selector: TypeAlias = str | int | slice | Wild | Chosen


@dataclass(frozen=True, slots=True)
class Segment:
    """Selectors between one pair of brackets; `deep` after two dots."""

    selectors: tuple[Selector, ...]
    deep: bool = False


def singular(segments: tuple[Segment, ...]) -> tuple[str | int, ...] | None:
    """The names and indexes, when the query can find one value at most."""
    steps = [segment.selectors[0] for segment in segments if len(segment.selectors) == 1 and not segment.deep]
    plain = tuple([step for step in steps if isinstance(step, (str, int))])
    return plain if len(plain) == len(segments) else None


def direct(steps: tuple[str | int, ...] | None) -> Location | None:
    """The steps, when others may take them as they are: no index counts from the end."""
    if steps is None or any(isinstance(step, int) and not 0 <= step < _MAX_INDEX for step in steps):
        return None
    return steps


def taken(value: Any, steps: tuple[str | int, ...]) -> object:
    """The one value that the steps lead to, or ABSENT."""
    for step in steps:
        if isinstance(step, str):
            value = value.get(step, ABSENT) if isinstance(value, dict) else ABSENT
        elif isinstance(value, list) and -len(value) <= step < len(value):
            value = value[step]
        else:
            return ABSENT
    return value


def steps_of(segments: tuple[Segment, ...]) -> Step:
    """One step that does what the segments say."""
    then: Step = keep
    for segment in reversed(segments):
        children = _each([_selecting(selector, then) for selector in segment.selectors])
        then = _deep(children) if segment.deep else children
    return then


def _each(steps: list[Step]) -> Step:
    if len(steps) == 1:
        return steps[0]

    def every(value: object, place: Place, run: PathRun, hits: Hits) -> None:
        for step in steps:
            step(value, place, run, hits)

    return every


def _selecting(selector: Selector, then: Step) -> Step:
    match selector:
        case str():
            return _member(selector, then)
        case int():
            return _element(selector, then)
        case slice():
            return _elements(selector, then)
        case Wild():
            return everything(then)
        case Chosen(test):
            return _chosen(test, then)


def _member(name: str, then: Step) -> Step:
    def step(value: object, place: Place, run: PathRun, hits: Hits) -> None:
        run.work.spend()
        if isinstance(value, dict) and (found := value.get(name, ABSENT)) is not ABSENT:
            then(found, (place, name), run, hits)

    return step


def _element(index: int, then: Step) -> Step:
    def step(value: object, place: Place, run: PathRun, hits: Hits) -> None:
        run.work.spend()
        if isinstance(value, list) and -len(value) <= index < len(value):
            then(value[index], (place, index if index >= 0 else index + len(value)), run, hits)

    return step


def _elements(part: slice, then: Step) -> Step:
    def step(value: object, place: Place, run: PathRun, hits: Hits) -> None:
        run.work.spend()
        if isinstance(value, list) and part.step != 0:
            for index in range(*part.indices(len(value))):
                run.work.spend()
                then(value[index], (place, index), run, hits)

    return step


def everything(then: Step) -> Step:
    def step(value: object, place: Place, run: PathRun, hits: Hits) -> None:
        for key, child in children_of(value, run.work):
            then(child, (place, key), run, hits)

    return step


def _chosen(test: Test, then: Step) -> Step:
    def step(value: object, place: Place, run: PathRun, hits: Hits) -> None:
        for key, child in children_of(value, run.work):
            if test(child, run):
                then(child, (place, key), run, hits)

    return step


def _deep(children: Step) -> Step:
    def step(value: object, place: Place, run: PathRun, hits: Hits) -> None:
        for inner, where in walked(value, place, run.work):
            children(inner, where, run, hits)

    return step


def children_of(value: object, work: Work) -> Iterator[tuple[str | int, object]]:
    """The members or elements with their names or indexes, paid for before the first is given."""
    work.spend()
    if isinstance(value, dict):
        work.spend(len(value))
        return iter(value.items())
    if isinstance(value, list):
        work.spend(len(value))
        return enumerate(value)
    return iter(())


def walked(value: object, place: Place, work: Work) -> Iterator[tuple[object, Place]]:
    """The arrays and objects in a value, itself first, each before what is inside it. No recursion, however deep they are."""
    waiting: list[tuple[object, Place]] = [(value, place)]
    while waiting:
        value, place = waiting.pop()
        if not isinstance(value, (dict, list)):
            continue
        yield value, place
        inside = [(child, (place, key)) for key, child in children_of(value, work) if isinstance(child, (dict, list))]
        waiting.extend(reversed(inside))
