"""Queries over documents (HER-24): `{"query": {"field": value, "a.b": {"like": "x.*"}, "or": [{…}, {…}]}}`. Pure.

| written | means |
|---|---|
| `"field": value` | the value there equals |
| `"field": {"eq": …}`, `"ne"`, `"gt"`, `"lt"` | equals, differs, is greater, is less |
| `"field": {"in": […]}` | equals one of them |
| `"field": {"like": "…"}` | the regular expression fits the whole text |
| `"and": […]`, `"or": […]`, `"not": {…}` | all, some, not |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tidings.doors.hermes.refusals import ErrorCode, HermesRefused, refused
from tidings.errors import FilterSyntaxError

Found = Callable[[Any], bool]
Fits = Callable[[str], Callable[[str], bool]]
"""Makes a regular expression that has to fit the whole of a text. Raises FilterSyntaxError."""

DEEPEST, MOST = 16, 200
_MISSING = object()


class _Reader:
    """Reads one query; counts its conditions, so that none takes long."""

    def __init__(self, fits: Fits) -> None:
        self._fits = fits
        self._count = 0

    def query(self, raw: object, depth: int = 0) -> Found:
        if not isinstance(raw, dict) or depth > DEEPEST:
            raise _unreadable("a query is an object of conditions")
        return _every([self._condition(name, value, depth) for name, value in raw.items()])

    def _condition(self, name: str, value: object, depth: int) -> Found:
        self._count += 1
        if self._count > MOST:
            raise _unreadable(f"at most {MOST} conditions")
        match name:
            case "and":
                return _every(self._parts(value, depth))
            case "or":
                parts = self._parts(value, depth)
                return lambda document: any(part(document) for part in parts)
            case "not":
                part = self.query(value, depth + 1)
                return lambda document: not part(document)
        test, path = self._test(value), name.split(".")
        return lambda document: test(_at(document, path))

    def _parts(self, value: object, depth: int) -> list[Found]:
        if not isinstance(value, list):
            raise _unreadable("and, or take a list of queries")
        return [self.query(one, depth + 1) for one in value]

    def _test(self, value: object) -> Found:
        if not isinstance(value, dict):
            return lambda found: _equal(found, value)
        return _every([self._compare(word, given) for word, given in value.items()])

    def _compare(self, word: str, given: Any) -> Found:
        match word:
            case "eq":
                return lambda found: _equal(found, given)
            case "ne":
                return lambda found: not _equal(found, given)
            case "gt":
                return lambda found: _ordered(found, given) and found > given
            case "lt":
                return lambda found: _ordered(found, given) and found < given
            case "in" if isinstance(given, list):
                return lambda found: any(_equal(found, one) for one in given)
            case "like" if isinstance(given, str):
                fits = self._fits(given)
                return lambda found: isinstance(found, str) and fits(found)
            case "not":
                test = self._test(given)
                return lambda found: not test(found)
        raise _unreadable(f"{word[:40]} is no comparison, or not of this value")


def read_query(raw: object, fits: Fits) -> Found:
    """The query of a request's body. Raises HermesRefused."""
    if not isinstance(raw, dict) or not isinstance(raw.get("query"), dict):
        raise _unreadable('expected {"query": {…}}')
    try:
        return _Reader(fits).query(raw["query"])
    except FilterSyntaxError as error:
        raise _unreadable(str(error)) from error


def _every(parts: list[Found]) -> Found:
    return lambda document: all(part(document) for part in parts)


def _at(document: Any, path: list[str]) -> Any:
    for name in path:
        document = document.get(name, _MISSING) if isinstance(document, Mapping) else _MISSING
    return document


def _equal(found: object, given: object) -> bool:
    """Hermes compares texts: 5 and "5" are equal."""
    if found is _MISSING:
        return given is None
    return found == given or _text(found) == _text(given)


def _text(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value


def _ordered(found: object, given: object) -> bool:
    numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in (found, given))
    return numbers or (isinstance(found, str) and isinstance(given, str))


def _unreadable(why: str) -> HermesRefused:
    return refused(ErrorCode.FORMAT_ERROR, f"Query could not be parsed: {why}")
