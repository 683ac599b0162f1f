"""The filters of the CloudEvents Subscriptions API (SUB-03 to SUB-05, SUB-10 to SUB-12).

| written | means |
|---|---|
| `{"exact": {"type": "a", "subject": "b"}}` | both attributes, in text form, equal these texts |
| `{"prefix": {…}}`, `{"suffix": {…}}` | all of them begin, or end, with these texts |
| `{"sql": "type = 'a' AND EXISTS subject"}` | the CESQL expression is true, without an error |
| `{"all": […]}`, `{"any": […]}`, `{"not": {…}}` | every one, some one, not this one |
| `[…]` | every one; of none: always |

An attribute that is missing satisfies nothing. Refused, with a JSON pointer: another dialect name; an object with no key or
several; an empty list, name or text; a name that is no attribute; an expression that cannot be evaluated, with its column;
depth over 32, more than 500 parts, more than 64 KiB.
"""

from __future__ import annotations

import msgspec

from tidings.errors import FilterSyntaxError
from tidings.filters.algebra import Always, Compare, Filter, Not, Order, Text, TextOp, all_of, any_of, cesql_of, literal
from tidings.filters.paths import AttributeTextPath

MAX_DEPTH = 32
MAX_PARTS = 500
MAX_BYTES = 64 << 10

_DIALECTS = "exact, prefix, suffix, all, any, not or sql"


def parse(raw: object) -> Filter:
    """The filter that these objects stand for. Raises FilterSyntaxError with the JSON pointer."""
    reader = _Reader()
    if raw == []:
        return Always(True)
    found = all_of(*reader.each(raw, "", 1)) if isinstance(raw, list) else reader.one(raw, "", 1)
    if _size(raw) > MAX_BYTES:
        raise FilterSyntaxError("the filter is too large", expected=f"at most {MAX_BYTES} bytes of JSON")
    return found


class _Reader:
    """Reads filter objects, counting its way so that no input costs more than the limits."""

    def __init__(self) -> None:
        self._parts = 0

    def one(self, raw: object, at: str, depth: int) -> Filter:
        self._count(at, depth)
        if not isinstance(raw, dict) or len(raw) != 1:
            raise FilterSyntaxError("a filter is an object with one key", at=at or "/", found=raw, expected=_DIALECTS)
        ((name, inner),) = raw.items()
        place = f"{at}/{_escaped(name)}"
        match name:
            case "all":
                return all_of(*self.each(inner, place, depth + 1))
            case "any":
                return any_of(*self.each(inner, place, depth + 1))
            case "not":
                return Not(self.one(inner, place, depth + 1))
            case "exact" | "prefix" | "suffix":
                return all_of(*self._pairs(name, inner, place))
            case "sql":
                return _sql(inner, place)
        raise FilterSyntaxError("this filter dialect is not known", at=place, found=name, expected=_DIALECTS)

    def each(self, raw: object, at: str, depth: int) -> list[Filter]:
        if not isinstance(raw, list) or not raw:
            raise FilterSyntaxError("filters are missing", at=at, found=raw, expected="an array of at least one filter")
        return [self.one(part, f"{at}/{n}", depth) for n, part in enumerate(raw)]

    def _pairs(self, dialect: str, raw: object, at: str) -> list[Filter]:
        if not isinstance(raw, dict) or not raw:
            raise FilterSyntaxError("attributes are missing", at=at, found=raw, expected="an object of names and texts")
        return [self._pair(dialect, name, text, f"{at}/{_escaped(name)}") for name, text in raw.items()]

    def _pair(self, dialect: str, name: object, text: object, at: str) -> Filter:
        self._count(at, 1)
        if not isinstance(name, str) or not isinstance(text, str) or not text:
            raise FilterSyntaxError("the value is no text", at=at, found=text, expected="a text of at least one character")
        try:
            return _condition(dialect, AttributeTextPath(name), text)
        except FilterSyntaxError as error:
            raise FilterSyntaxError(error.what, at=at, found=error.found, expected=error.expected) from error

    def _count(self, at: str, depth: int) -> None:
        self._parts += 1
        if depth > MAX_DEPTH:
            raise FilterSyntaxError("the filter is nested too deeply", at=at, expected=f"at most {MAX_DEPTH} levels")
        if self._parts > MAX_PARTS:
            raise FilterSyntaxError("the filter has too many parts", at=at, expected=f"at most {MAX_PARTS}")


def _sql(raw: object, at: str) -> Filter:
    try:
        return cesql_of(raw)
    except FilterSyntaxError as error:
        place = f"{at}, {error.at}" if error.at else at
        raise FilterSyntaxError(error.what, at=place, found=error.found, expected=error.expected) from error


def _condition(dialect: str, path: AttributeTextPath, text: str) -> Filter:
    match dialect:
        case "exact":
            return Compare(path, Order.EQ, literal(text))
        case "prefix":
            return Text(path, TextOp.PREFIX, text)
    return Text(path, TextOp.SUFFIX, text)


def _escaped(name: object) -> str:
    """A member name as a step of a JSON pointer."""
    return str(name).replace("~", "~0").replace("/", "~1")


def _size(raw: object) -> int:
    try:
        return len(msgspec.json.encode(raw))
    except (TypeError, ValueError, RecursionError) as error:
        raise FilterSyntaxError(f"the filter is no JSON: {error}") from error
