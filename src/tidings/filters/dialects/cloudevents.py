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

from tidings.errors import FilterSyntaxError
from tidings.filters.algebra import Always, Compare, Filter, Not, Order, Text, TextOp, all_of, any_of, cesql_of, literal
from tidings.filters.dialects.documents import Count, check_size, member, placed
from tidings.filters.paths import AttributeTextPath

_DIALECTS = "exact, prefix, suffix, all, any, not or sql"


def parse(raw: object) -> Filter:
    """The filter that these objects stand for. Raises FilterSyntaxError with the JSON pointer."""
    reader = _Reader()
    if raw == []:
        return Always(True)
    found = all_of(*reader.each(raw, "", 1)) if isinstance(raw, list) else reader.one(raw, "", 1)
    check_size(raw)
    return found


class _Reader:
    """Reads filter objects, counting its way so that no input costs more than the limits."""

    def __init__(self) -> None:
        self._count = Count()

    def one(self, raw: object, at: str, depth: int) -> Filter:
        self._count.part(at, depth)
        if not isinstance(raw, dict) or len(raw) != 1:
            raise FilterSyntaxError("a filter is an object with one key", at=at or "/", found=raw, expected=_DIALECTS)
        ((name, inner),) = raw.items()
        place = f"{at}/{member(name)}"
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
                return placed(place, lambda: cesql_of(inner))
        raise FilterSyntaxError("this filter dialect is not known", at=place, found=name, expected=_DIALECTS)

    def each(self, raw: object, at: str, depth: int) -> list[Filter]:
        if not isinstance(raw, list) or not raw:
            raise FilterSyntaxError("filters are missing", at=at, found=raw, expected="an array of at least one filter")
        return [self.one(part, f"{at}/{n}", depth) for n, part in enumerate(raw)]

    def _pairs(self, dialect: str, raw: object, at: str) -> list[Filter]:
        if not isinstance(raw, dict) or not raw:
            raise FilterSyntaxError("attributes are missing", at=at, found=raw, expected="an object of names and texts")
        return [self._pair(dialect, name, text, f"{at}/{member(name)}") for name, text in raw.items()]

    def _pair(self, dialect: str, name: object, text: object, at: str) -> Filter:
        self._count.part(at, 1)
        if not isinstance(name, str) or not isinstance(text, str) or not text:
            raise FilterSyntaxError("the value is no text", at=at, found=text, expected="a text of at least one character")
        return placed(at, lambda: _condition(dialect, AttributeTextPath(name), text))


def _condition(dialect: str, path: AttributeTextPath, text: str) -> Filter:
    match dialect:
        case "exact":
            return Compare(path, Order.EQ, literal(text))
        case "prefix":
            return Text(path, TextOp.PREFIX, text)
    return Text(path, TextOp.SUFFIX, text)
