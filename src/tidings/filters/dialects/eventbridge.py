"""Event patterns as Amazon EventBridge has them: an object in the shape of the event, with lists of what a field may be.

| written | means |
|---|---|
| `"detail": {…}` | the payload; below it names lead into objects |
| `"detail-type": […]`, `"source": […]`, other names | the attributes `type`, `source`, or of that name |
| `["a", 5, true, null, ""]` | the value is one of them |
| `[{"prefix": "a"}]`, `suffix`, `equals-ignore-case` | a text that does |
| `[{"prefix": {"equals-ignore-case": "a"}}]`, `suffix` too | a text that does, in any letter case |
| `[{"wildcard": "a*b"}]` | a text that fits as a whole; `\\*` is a star, `\\\\` a backslash |
| `[{"numeric": [">", 0, "<=", 5]}]`, `["=", 5]` | a number in that range |
| `[{"cidr": "10.0.0.0/24"}]` | the text of an IP address in that network |
| `[{"anything-but": …}]` | a value that is there, and is not this text or number, or any of a list |
| `[{"anything-but": {"prefix": …}}]` | a value that does not; `suffix`, `wildcard`, `equals-ignore-case` too; a text or a list |
| `[{"exists": true}]`, `[{"exists": false}]` | there is, or is not, a value; an object is none |
| `{"a": …, "b": …}` | both fields; of a list, some entry |
| `{"$or": [{…}, {…}]}` | some of these patterns |

Where the event has an array, some element must satisfy; fields of one object in the pattern are looked for in one element.
Refused, with a JSON pointer: what is not in this table; an empty object or list; a name that is no attribute beside `detail`;
a text that RE2 cannot take; depth over 32, more than 500 parts, more than 64 KiB.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal

from tidings.errors import FilterSyntaxError
from tidings.filters.algebra import (
    Always,
    Compare,
    Exists,
    Filter,
    InNetwork,
    Inside,
    Literal,
    Not,
    OneOf,
    Order,
    Text,
    TextOp,
    ValueKind,
    all_of,
    any_of,
    literal,
)
from tidings.filters.dialects.documents import MAX_PARTS, Count, check_size, member, placed
from tidings.filters.paths import ITEM, AttributePath, DataPath, Path

OR = "$or"
_ATTRIBUTES = {"detail-type": "type"}
_BOUNDS = {">": Order.GT, ">=": Order.GE, "<": Order.LT, "<=": Order.LE}
_OPERATORS = "prefix, suffix, equals-ignore-case, wildcard, numeric, cidr, anything-but or exists"
_VALUE = "a text, number, boolean, null or an object with an operator"


def parse(raw: object) -> Filter:
    """The filter that the pattern stands for. Raises FilterSyntaxError with the JSON pointer."""
    found = _Reader().envelope(raw, "", 1)
    check_size(raw)
    return found


class _Reader:
    """Reads patterns, counting its way so that no input costs more than the limits."""

    def __init__(self) -> None:
        self._count = Count()

    def envelope(self, raw: object, at: str, depth: int) -> Filter:
        """The outermost object: attributes beside `detail`."""
        return self._fields(raw, at, depth, self._outer)

    def _fields(self, raw: object, at: str, depth: int, field: Callable[[str, object, str, int], Filter]) -> Filter:
        """Every field of an object; `$or` may stand among them."""
        self._count.part(at, depth)
        if not isinstance(raw, dict) or not raw:
            raise FilterSyntaxError("a pattern is an object", at=at or "/", found=raw, expected="an object with a field")
        parts = []
        for name, inner in raw.items():
            place = f"{at}/{member(name)}"
            if not isinstance(name, str):
                raise FilterSyntaxError("this is no name", at=place, found=name, expected="a text")
            if name == OR:
                parts.append(any_of(*self._each(inner, place, depth, field)))
            else:
                parts.append(field(name, inner, place, depth + 1))
        return all_of(*parts)

    def _each(self, raw: object, at: str, depth: int, field: Callable[[str, object, str, int], Filter]) -> list[Filter]:
        if not isinstance(raw, list) or len(raw) < 2:
            raise FilterSyntaxError("$or joins patterns", at=at, found=raw, expected="an array of at least two objects")
        return [self._fields(one, f"{at}/{n}", depth + 1, field) for n, one in enumerate(raw)]

    def _outer(self, name: str, raw: object, at: str, depth: int) -> Filter:
        if name == "detail":
            if not isinstance(raw, dict):
                raise FilterSyntaxError("detail is the payload", at=at, found=raw, expected="an object with its members")
            return self._fields(raw, at, depth, self._inner)
        if name == "data":
            raise FilterSyntaxError("the payload has another name in patterns", at=at, found=name, expected="detail")
        path = placed(at, lambda: AttributePath(_ATTRIBUTES.get(name, name)))
        found = self._alternatives(raw, path, at)
        parts = [found.part, Exists(path)] if found.there else [found.part]
        return any_of(*_without_never(parts), *([Not(Exists(path))] if found.absent else []))

    def _inner(self, name: str, raw: object, at: str, depth: int) -> Filter:
        path = placed(at, lambda: DataPath((name,)))
        if isinstance(raw, dict):
            return self._object(path, raw, at, depth)
        found = self._alternatives(raw, ITEM, at)
        part = Always(True) if found.there else found.part
        parts: list[Filter] = [] if part == Always(False) else [Inside(path, ValueKind.VALUE, part)]
        return any_of(*parts, *([Not(Inside(path, ValueKind.VALUE, Always(True)))] if found.absent else []))

    def _object(self, path: DataPath, raw: object, at: str, depth: int) -> Filter:
        """Where there is no object at all, a pattern that only wants fields to be absent is satisfied too."""
        fields = self._fields(raw, at, depth, self._inner)
        inside = Inside(path, ValueKind.OBJECT, fields)
        return any_of(inside, Not(Inside(path, ValueKind.OBJECT, Always(True)))) if _satisfied_by_nothing(raw) else inside

    def _alternatives(self, raw: object, path: Path, at: str) -> _Found:
        if not isinstance(raw, list) or not raw:
            raise FilterSyntaxError("a field has a list of values", at=at, found=raw, expected=f"an array of {_VALUE}")
        values: list[Literal] = []
        parts: list[Filter] = []
        found = _Found()
        for n, one in enumerate(raw):
            place = f"{at}/{n}"
            self._count.part(place, 1)
            if not isinstance(one, dict):
                values.append(_literal(one, place, _VALUE))
                continue
            name, inner = _operator(one, place)
            if name == "exists":
                found.add_existence(inner, f"{place}/exists")
            else:
                parts.append(_condition(name, inner, path, f"{place}/{name}"))
        equal = [OneOf(path, tuple(values))] if len(values) > 1 else [Compare(path, Order.EQ, value) for value in values]
        found.part = any_of(*equal, *parts)
        return found


class _Found:
    """What a list of alternatives asks for: a condition on a value, that there is one, that there is none."""

    def __init__(self) -> None:
        self.part: Filter = Always(False)
        self.there = False
        self.absent = False

    def add_existence(self, raw: object, at: str) -> None:
        if not isinstance(raw, bool):
            raise FilterSyntaxError("exists takes a boolean", at=at, found=raw, expected="true or false")
        self.there |= raw
        self.absent |= not raw


def _without_never(parts: list[Filter]) -> list[Filter]:
    return [part for part in parts if part != Always(False)]


def _satisfied_by_nothing(raw: object) -> bool:
    """Whether every field of the pattern may be absent."""
    if isinstance(raw, list):
        return {"exists": False} in raw
    assert isinstance(raw, dict)
    return all(
        any(map(_satisfied_by_nothing, inner)) if name == OR else _satisfied_by_nothing(inner) for name, inner in raw.items()
    )


def _operator(raw: dict[object, object], at: str) -> tuple[str, object]:
    if len(raw) == 1:
        ((name, inner),) = raw.items()
        if name in ("exists", *_CONDITIONS):
            return str(name), inner
        at = f"{at}/{member(name)}"
    raise FilterSyntaxError("this operator is not known", at=at, found=raw, expected=f"one of {_OPERATORS}")


def _condition(name: str, raw: object, path: Path, at: str) -> Filter:
    return placed(at, lambda: _CONDITIONS[name](raw, path, at))


def _affix(op: TextOp) -> Callable[[object, Path, str], Filter]:
    """`prefix` or `suffix`, with a text or with `equals-ignore-case`."""

    def condition(raw: object, path: Path, at: str) -> Filter:
        if isinstance(raw, dict) and list(raw) == [_IGNORE_CASE]:
            text = re.escape(_text(raw[_IGNORE_CASE], f"{at}/{_IGNORE_CASE}"))
            return Text(path, TextOp.REGEX, rf"(?i)\A{text}" if op is TextOp.PREFIX else rf"(?i){text}\z")
        return Text(path, op, _text(raw, at))

    return condition


def _ignoring_case(raw: object, path: Path, at: str) -> Filter:
    return Text(path, TextOp.REGEX, rf"(?i)\A{re.escape(_text(raw, at))}\z")


def _wildcard(raw: object, path: Path, at: str) -> Filter:
    pattern = _text(raw, at)
    plain = re.sub(r"\\[*\\]", "-", pattern)
    if "**" in plain:
        raise FilterSyntaxError("two stars stand side by side", found=pattern, expected="one star")
    if "\\" in plain:
        raise FilterSyntaxError("a backslash takes a star or a backslash", found=pattern, expected=r"\* or \\")
    return Text(path, TextOp.LIKE, pattern.replace("?", r"\?"))


def _numeric(raw: object, path: Path, at: str) -> Filter:
    match raw:
        case ["=", number]:
            return Compare(path, Order.EQ, _number(number, f"{at}/1"))
        case [">" | ">=" | "<" | "<=" as op, number]:
            return Compare(path, _BOUNDS[op], _number(number, f"{at}/1"))
        case [">" | ">=" as low, least, "<" | "<=" as high, most]:
            bottom, top = _number(least, f"{at}/1"), _number(most, f"{at}/3")
            if not bottom.value < top.value:  # type: ignore[operator]
                raise FilterSyntaxError("the range is empty", at=at, found=raw, expected="a lower number first")
            return all_of(Compare(path, _BOUNDS[low], bottom), Compare(path, _BOUNDS[high], top))
    expected = '["=", n], ["<", n], or [">", n, "<=", m] with >= and < as well'
    raise FilterSyntaxError("this is no range", at=at, found=raw, expected=expected)


def _cidr(raw: object, path: Path, at: str) -> Filter:
    text = _text(raw, at)
    if "/" not in text:
        raise FilterSyntaxError("the length of the network is missing", at=at, found=text, expected="10.0.0.0/24")
    return InNetwork(path, text)


def _anything_but(raw: object, path: Path, at: str) -> Filter:
    return all_of(Exists(path), Not(_excluded(raw, path, at)))


def _excluded(raw: object, path: Path, at: str) -> Filter:
    if not isinstance(raw, dict):
        values = tuple(_literal(one, place, "texts and numbers") for one, place in _listed(raw, at))
        if any(value.value is None or isinstance(value.value, bool) for value in values):
            raise FilterSyntaxError("this cannot be excluded", at=at, found=raw, expected="texts and numbers")
        return OneOf(path, values)
    if len(raw) != 1 or next(iter(raw)) not in _EXCLUDING:
        raise FilterSyntaxError("this cannot be excluded", at=at, found=raw, expected=" or ".join(_EXCLUDING))
    ((name, inner),) = raw.items()
    texts = [(_text(one, place), place) for one, place in _listed(inner, f"{at}/{name}")]
    return any_of(*(_condition(name, text, path, place) for text, place in texts))


def _listed(raw: object, at: str) -> list[tuple[object, str]]:
    """The elements of a list, or the one thing that stands in its place."""
    if not isinstance(raw, list):
        return [(raw, at)]
    if not raw or len(raw) > MAX_PARTS:
        raise FilterSyntaxError("this list is empty or too long", at=at, expected=f"1 to {MAX_PARTS} elements")
    return [(one, f"{at}/{n}") for n, one in enumerate(raw)]


def _text(raw: object, at: str) -> str:
    if not isinstance(raw, str):
        raise FilterSyntaxError("this is no text", at=at, found=raw, expected="a text")
    return raw


def _number(raw: object, at: str) -> Literal:
    if isinstance(raw, bool) or not isinstance(raw, (int, float, Decimal)):
        raise FilterSyntaxError("this is no number", at=at, found=raw, expected="a number")
    return _literal(raw, at, "a number")


def _literal(raw: object, at: str, expected: str) -> Literal:
    try:
        return literal(raw)
    except (FilterSyntaxError, ArithmeticError) as error:
        raise FilterSyntaxError("this is no value to compare with", at=at, found=raw, expected=expected) from error


_IGNORE_CASE = "equals-ignore-case"
_EXCLUDING = ("prefix", "suffix", _IGNORE_CASE, "wildcard")
_CONDITIONS: dict[str, Callable[[object, Path, str], Filter]] = {
    "prefix": _affix(TextOp.PREFIX),
    "suffix": _affix(TextOp.SUFFIX),
    _IGNORE_CASE: _ignoring_case,
    "wildcard": _wildcard,
    "numeric": _numeric,
    "cidr": _cidr,
    "anything-but": _anything_but,
}
