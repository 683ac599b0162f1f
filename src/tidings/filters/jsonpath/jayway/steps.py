"""The steps of Jayway's json-path 2.9/2.10: like those of the standard, and different in many small ways.

| written | means | where nothing is there |
|---|---|---|
| `.a` `['a']` | that member | a path of such steps alone is missing, as is one whose beginning is made of them |
| `['a','b']` at the end | one object with those members | without those that are not there |
| `['a','b']` before other steps | each of the members | |
| `[0]` `[-1]` `[0,2]` | those elements | beyond the end: nothing |
| `[1:]` `[:-1]` `[1:3]` | elements; a negative end counts from the end of the array only in `[:e]`, a negative begin everywhere | |
| `.*` `[*]` | all members, all elements | |
| `[?(…)]` | of an array the elements that pass, of an object the object itself if it passes | |
| `..x` | x in everything; `..[?(…)]` tries arrays and objects only | |
| `.sum()` at the end | what the function makes of the value; after `..` of all values found | missing |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from tidings.filters.jsonpath.compiled_path import ABSENT, NOWHERE, Hits, Location, Lost, PathRun, Place, Step, Test, keep
from tidings.filters.jsonpath.standard.steps import children_of, everything, walked


@dataclass(frozen=True, slots=True)
class Members:
    """One or more members of an object."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Elements:
    """One or more elements of an array; negative ones count from its end."""

    indexes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SliceStep:
    """Neighboring elements."""

    begin: int | None
    end: int | None


@dataclass(frozen=True, slots=True)
class Every:
    """All members, all elements."""


@dataclass(frozen=True, slots=True)
class Matching:
    """What passes a predicate."""

    test: Test


@dataclass(frozen=True, slots=True)
class Deep:
    """The next token, tried on everything inside."""


Made: TypeAlias = Callable[[object, PathRun], object]


@dataclass(frozen=True, slots=True)
class Call:
    """A function at the end of a path: what it makes of the value found."""

    made: Made


Token: TypeAlias = Members | Elements | SliceStep | Every | Matching | Deep | Call


def is_definite(tokens: tuple[Token, ...]) -> bool:
    """Whether the path leads to one value at most."""
    return all(_definite(token, number == len(tokens)) for number, token in enumerate(tokens, 1))


def _definite(token: Token, last: bool) -> bool:
    match token:
        case Members(names):
            return last or len(names) == 1
        case Elements(indexes):
            return len(indexes) == 1
    return isinstance(token, Call)


def plain(tokens: tuple[Token, ...]) -> Location | None:
    """The names and indexes of a path that has nothing else."""
    steps: list[str | int] = []
    for token in tokens:
        match token:
            case Members((name,)):
                steps.append(name)
            case Elements((index,)) if index >= 0:
                steps.append(index)
            case _:
                return None
    return tuple(steps)


def steps_of(tokens: tuple[Token, ...], *, require: bool = False) -> Step:
    """One step that does what the tokens say. `require`: every member named must be there wherever it is looked for."""
    return _Steps(tokens, require).after(0)


class _Steps:
    """Makes steps from tokens, each once."""

    def __init__(self, tokens: tuple[Token, ...], require: bool) -> None:
        self._tokens = tokens
        self._require = require
        self._made: dict[int, Step] = {len(tokens): keep}

    def after(self, number: int) -> Step:
        """The step for this token and all that follow."""
        for one in range(len(self._tokens) - 1, number - 1, -1):
            if one not in self._made:
                self._made[one] = self._step(one)
        return self._made[number]

    def _step(self, number: int) -> Step:
        token, last, then = self._tokens[number], number + 1 == len(self._tokens), self._made[number + 1]
        # As long as all before could lead to one place only, not getting there means that the path is missing.
        strict = all(_definite(before, last=False) for before in self._tokens[:number])
        match token:
            case Deep():
                return self._deep(number)
            case Members((name,)):
                return _member(name, then, strict, self._require or (strict and not last))
            case Members(names) if last:
                return _merged(names, strict, self._require)
            case Members(names):
                return _spread([_member(one, then, False, self._require) for one in names], dict, strict)
            case Elements(indexes):
                return _spread([_element(index, then) for index in indexes], list, strict)
            case SliceStep(begin, end):
                return _spread([_range(begin, end, then)], list, strict)
            case Every():
                return everything(then)
            case Matching(test):
                return _matching(test, then, strict)
            case Call(made):
                return _calling(made)

    def _deep(self, number: int) -> Step:
        then = self._made[number + 1]
        applies = _applies(self._tokens[number + 1], last=number + 2 == len(self._tokens))

        def deep(value: object, place: Place, run: PathRun, hits: Hits) -> None:
            for inner, where in walked(value, place, run.work):
                if applies(inner, run):
                    then(inner, where, run, hits)

        return deep


def _applies(token: Token, last: bool) -> Test:
    """Whether a deep scan tries the token on a value."""
    match token:
        case Members(names) if last or len(names) == 1:
            return lambda value, run: isinstance(value, dict) and all(name in value for name in names)
        case Members():
            return lambda value, run: isinstance(value, dict)
        case Elements() | SliceStep():
            return lambda value, run: isinstance(value, list)
        case Matching(test):
            return test
    return lambda value, run: isinstance(token, Every)


def _member(name: str, then: Step, strict: bool, needed: bool) -> Step:
    def step(value: object, place: Place, run: PathRun, hits: Hits) -> None:
        run.work.spend()
        if not isinstance(value, dict):
            if strict:
                raise Lost
        elif (found := value.get(name, ABSENT)) is not ABSENT:
            then(found, (place, name), run, hits)
        elif needed:
            raise Lost

    return step


def _merged(names: tuple[str, ...], strict: bool, needed: bool) -> Step:
    def step(value: object, place: Place, run: PathRun, hits: Hits) -> None:
        run.work.spend(len(names))
        if not isinstance(value, dict):
            if strict:
                raise Lost
            return
        found = {name: value[name] for name in names if name in value}
        if needed and len(found) < len(set(names)):
            raise Lost
        hits.append((found, (place, tuple(found))))

    return step


def _spread(steps: list[Step], wanted: type, strict: bool) -> Step:
    def step(value: object, place: Place, run: PathRun, hits: Hits) -> None:
        run.work.spend()
        if isinstance(value, wanted):
            for one in steps:
                one(value, place, run, hits)
        elif strict:
            raise Lost

    return step


def _element(index: int, then: Step) -> Step:
    def step(value: Any, place: Place, run: PathRun, hits: Hits) -> None:
        run.work.spend()
        at = index if index >= 0 else index + len(value)
        if 0 <= at < len(value):
            then(value[at], (place, at), run, hits)

    return step


def _range(begin: int | None, end: int | None, then: Step) -> Step:
    def step(value: Any, place: Place, run: PathRun, hits: Hits) -> None:
        for index in _indexes(begin, end, len(value)):
            run.work.spend()
            at = index if index >= 0 else index + len(value)
            if 0 <= at < len(value):
                then(value[at], (place, at), run, hits)

    return step


def _indexes(begin: int | None, end: int | None, length: int) -> range:
    if begin is None:
        assert end is not None
        return range(min(length, end if end >= 0 else end + length))
    if end is None:
        return range(max(0, begin if begin >= 0 else begin + length), length)
    # Less than -length is before the first element, where there is nothing.
    return range(max(begin, -length), min(length, end))


def _matching(test: Test, then: Step, strict: bool) -> Step:
    def step(value: object, place: Place, run: PathRun, hits: Hits) -> None:
        if isinstance(value, dict):
            run.work.spend()
            if test(value, run):
                then(value, place, run, hits)
        elif isinstance(value, list):
            for index, child in children_of(value, run.work):
                if test(child, run):
                    then(child, (place, index), run, hits)
        elif strict:
            raise Lost

    return step


def _calling(made: Made) -> Step:
    def step(value: object, place: Place, run: PathRun, hits: Hits) -> None:
        run.work.spend()
        hits.append((made(value, run), NOWHERE))

    return step
