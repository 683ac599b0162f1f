"""Writes a filter as an event pattern.

| plain | written |
|---|---|
| `=`, one of | the values |
| `!=`, none of | `anything-but` |
| `<` … with a number | `numeric` |
| begins with, ends with, wildcards | `prefix`, `suffix`, `wildcard` |
| there, not there | `exists` |
| and, or | fields of an object, `$or` |

Refused: two conditions on one field that must both hold, unless both are bounds; an order of texts; regular expressions.
"""

from __future__ import annotations

from typing import Any, NoReturn, TypeAlias

from tidings.filters import text_patterns
from tidings.filters.algebra import AllOf, Always, AnyOf, Compare, Exists, Filter, Literal, Not, OneOf, Order, Text, TextOp
from tidings.filters.cesql.values import fits
from tidings.filters.conversion.cesql_logic import TEXTS
from tidings.filters.conversion.differences import Differences, refuse
from tidings.filters.conversion.negation import pushed_down
from tidings.filters.conversion.plain_form import ARRAYS_OPENED
from tidings.filters.paths import AttributePath, AttributeTextPath, DataPath, Path

Pattern: TypeAlias = dict[str, Any]

_OR = "$or"
_AFFIXES = {TextOp.PREFIX: "prefix", TextOp.SUFFIX: "suffix"}
_BOUNDS = (Order.GT, Order.GE, Order.LT, Order.LE)


def written(filter: Filter, differences: Differences) -> Pattern:
    """The filter as an event pattern."""
    return _Writer(differences).of(pushed_down(filter))


class _Writer:
    """Writes patterns, each in the shape of a whole event."""

    def __init__(self, differences: Differences) -> None:
        self._differences = differences

    def of(self, filter: Filter) -> Pattern:
        match filter:
            case AllOf((Exists(path), Not(OneOf(other) | Text(other) as leaf))) if path == other:
                return self._field(leaf, [self._anything_but(leaf)])
            case AllOf(parts):
                found: Pattern = {}
                for part in parts:
                    self._join(found, self.of(part), part)
                return found
            case AnyOf(parts):
                return self._either([self.of(part) for part in parts])
            case Always(value):
                return {"detail-type": [{"exists": value}]}
            case Not(Exists() as leaf):
                return self._field(leaf, [{"exists": False}])
            case Not(Compare(path, Order.NE, value)):
                return self._field(filter.part, [{"exists": False}, *self._values(Compare(path, Order.EQ, value))])
            case Not(Compare() | OneOf() | Text() as leaf):
                return self._field(leaf, [{"exists": False}, self._anything_but(leaf)])
        return self._field(filter, self._values(filter))

    def _either(self, patterns: list[Pattern]) -> Pattern:
        """One field with more alternatives, if all are about the same field; `$or` otherwise."""
        fields = [_only_field(pattern) for pattern in patterns]
        first = fields[0]
        if first and all(field and field[0] == first[0] for field in fields):
            return _nested(first[0], [one for field in fields if field for one in field[1]])
        return {_OR: patterns}

    def _join(self, found: Pattern, more: Pattern, part: Filter) -> None:
        for name, inner in more.items():
            if name not in found:
                found[name] = inner
            elif isinstance(inner, dict) and isinstance(found[name], dict):
                self._join(found[name], inner, part)
            else:
                found[name] = _range(found[name], inner) or self._refuse(part, "one field is asked twice, and both must hold")

    def _field(self, leaf: Any, alternatives: list[Any]) -> Pattern:
        return _nested(self._names(leaf), alternatives)

    def _names(self, leaf: Any) -> tuple[str, ...]:
        match leaf.path:
            case AttributePath(name) | AttributeTextPath(name) if name != "detail":
                return ("detail-type" if name == "type" else name,)
            case DataPath(steps) if all(isinstance(step, str) and step != _OR for step in steps):
                self._differences.add(leaf.path, ARRAYS_OPENED)
                return ("detail", *map(str, steps))
            case DataPath():
                self._refuse(leaf, "it cannot name one element of an array")
        return self._refuse(leaf, "there is no field for it")

    def _values(self, leaf: Filter) -> list[Any]:
        match leaf:
            case Exists():
                return [{"exists": True}]
            case Compare(path, Order.EQ, value):
                return _spellings(path, value)
            case OneOf(path, values):
                return [one for value in values for one in _spellings(path, value)]
            case Compare(AttributePath() | DataPath(), Order() as op, value) if op in _BOUNDS and value.is_number:
                return [{"numeric": [str(op), value.value]}]
            case Compare(_, Order.NE):
                return [self._anything_but(leaf)]
            case Text():
                return [self._text(leaf)]
        return self._refuse(leaf, "it orders numbers only")

    def _anything_but(self, leaf: Filter) -> dict[str, Any]:
        match leaf:
            case Compare(path, Order.EQ | Order.NE, value):
                values = _spellings(path, value)
            case OneOf(path, several):
                values = [one for value in several for one in _spellings(path, value)]
            case Text():
                return {"anything-but": self._text(leaf)}
            case _:
                self._refuse(leaf, "an order cannot be negated, since other kinds of values are in none")
        if any(value is None or isinstance(value, bool) for value in values):
            self._refuse(leaf, "null, true and false cannot be excluded")
        return {"anything-but": values[0] if len(values) == 1 else values}

    def _text(self, leaf: Text) -> dict[str, str]:
        if isinstance(leaf.path, AttributeTextPath) and leaf.path.name not in TEXTS:
            self._refuse(leaf, f"it looks at attributes as they are, not at their text; write @{leaf.path.name}")
        match leaf.op:
            case TextOp.PREFIX | TextOp.SUFFIX:
                return {_AFFIXES[leaf.op]: leaf.pattern}
            case TextOp.CONTAINS:
                return {"wildcard": f"*{_starless(leaf.pattern)}*" if leaf.pattern else "*"}
            case TextOp.LIKE:
                parts = text_patterns.like_parts(leaf.pattern)
                if text_patterns.ONE not in parts:
                    wildcard = "".join(_starless(part) if isinstance(part, str) else "*" for part in parts)
                    return {"wildcard": "*".join(filter(None, wildcard.split("**"))) if "**" in wildcard else wildcard}
                self._refuse(leaf, "it has no wildcard for one character")
        return self._refuse(leaf, "it has no regular expressions")

    def _refuse(self, part: Filter, reason: str) -> NoReturn:
        refuse(part, "eventbridge", reason)


def _spellings(path: Path, value: Literal) -> list[Any]:
    """The value; of an attribute that is compared as text, every value with this text."""
    text = value.value
    if not isinstance(path, AttributeTextPath) or path.name in TEXTS or not isinstance(text, str):
        return [text]
    if text in ("true", "false"):
        return [text, text == "true"]
    number = int(text) if text.removeprefix("-").isdecimal() and text.isascii() and len(text) < 12 else None
    return [text, number] if number is not None and str(number) == text and fits(number) else [text]


def _starless(text: str) -> str:
    return text.replace("\\", "\\\\").replace("*", "\\*")


def _nested(names: tuple[str, ...], alternatives: list[Any]) -> Pattern:
    found: Any = alternatives
    for name in reversed(names):
        found = {name: found}
    return found  # type: ignore[no-any-return]


def _only_field(pattern: Pattern) -> tuple[tuple[str, ...], list[Any]] | None:
    """The one field that a pattern is about, and its alternatives."""
    names: list[str] = []
    found: Any = pattern
    while isinstance(found, dict):
        if len(found) != 1 or _OR in found:
            return None
        ((name, found),) = found.items()
        names.append(name)
    return tuple(names), found


def _range(one: Any, other: Any) -> list[Any] | None:
    """Two bounds as one range, the lower one first."""
    match one, other:
        case [{"numeric": [str(a), x]}], [{"numeric": [str(b), y]}] if a != "=" and b != "=":
            low, high = ((a, x), (b, y)) if a[0] == ">" else ((b, y), (a, x))
            if low[0][0] == ">" and high[0][0] == "<" and low[1] < high[1]:
                return [{"numeric": [*low, *high]}]
    return None
