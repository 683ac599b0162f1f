"""Says why: the tree of conditions with the values found, and the smallest set of them that decided.

For a match that is the branch that made it; for a non-match, the fewest conditions that alone were enough to fail it. Of
several sets of the same size it is the first as written.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import msgspec

from tidings.errors import shortened
from tidings.events.avro.payloads import NO_SCHEMAS, SchemaBook
from tidings.events.model import Event
from tidings.filters import backtracking_regex
from tidings.filters.algebra import AllOf, Always, AnyOf, Cesql, Filter, Leaf, Not
from tidings.filters.cesql import explanation
from tidings.filters.dialects.printer import printed
from tidings.filters.event_values import EventValues
from tidings.filters.matches import reading, test_of
from tidings.filters.paths import OnlyScalarPath, ScalarsPath
from tidings.filters.payload import MISSING

_SHOWN = 200
_PATIENCE = 1.0
"""Seconds that all slow expressions of one filter may take together: somebody waits for the answer."""
_VALUES = 20


@dataclass(frozen=True, slots=True)
class Explanation:
    """What came of one filter, or part of one.

    `found` is the value a condition saw: MISSING where there was none, a tuple where there were several, or none where one was
    wanted. `cause` says why the condition could not be decided to its end.
    """

    filter: Filter
    holds: bool
    found: object = MISSING
    parts: tuple[Explanation, ...] = ()
    cause: str = ""

    @property
    def matched(self) -> bool:
        return self.holds

    @property
    def causes(self) -> tuple[Explanation, ...]:
        """The smallest set of conditions whose outcomes decide this one."""
        match self.filter:
            case Not():
                return self.parts[0].causes
            case AllOf() | AnyOf():
                return self._deciding(isinstance(self.filter, AllOf))
        return (self,)

    def _deciding(self, every: bool) -> tuple[Explanation, ...]:
        """One part is enough to fail `all` or to satisfy `any`; otherwise it took every part."""
        if self.holds is every:
            return tuple(cause for part in self.parts for cause in part.causes)
        return min((part.causes for part in self.parts if part.holds is self.holds), key=len)

    def as_json(self) -> dict[str, Any]:
        """The verdict, its causes and the whole tree, ready to be written as JSON."""
        return {"matches": self.holds, "because": [cause._leaf() for cause in self.causes], "tree": self._tree()}

    def _tree(self) -> dict[str, Any]:
        match self.filter:
            case AllOf() | AnyOf():
                name = "all" if isinstance(self.filter, AllOf) else "any"
                return {"holds": self.holds, name: [part._tree() for part in self.parts]}
            case Not():
                return {"holds": self.holds, "not": self.parts[0]._tree()}
        return self._leaf()

    def _leaf(self) -> dict[str, Any]:
        leaf: dict[str, Any] = {"condition": printed(self.filter), "holds": self.holds}
        if isinstance(self.filter, Cesql):
            return leaf | explanation.as_json(self.filter.text, self.found)
        if not isinstance(self.filter, Always):
            leaf |= _found_as_json(self.found)
        return leaf | ({"cause": self.cause} if self.cause else {})

    def __str__(self) -> str:
        """A line for the verdict and one for each cause."""
        lines = [f"  {cause._line()}" for cause in self.causes]
        return "\n".join(["match, because" if self.holds else "no match, because", *lines])

    def _line(self) -> str:
        verdict = "holds" if self.holds else "does not hold"
        if isinstance(self.filter, Always):
            return f"{printed(self.filter)} {verdict} for any event"
        if isinstance(self.filter, Cesql):
            return f"{printed(self.filter)} {verdict}: {explanation.line(self.filter.text, self.found)}"
        return f"{printed(self.filter)} {verdict}: {self._reason()}"

    def _reason(self) -> str:
        found = f"found {_as_text(self.found)}"
        if not self.cause:
            return found
        return self.cause if self.found is MISSING else f"{found}, but {self.cause}"


def explain(filter: Filter, event: Event, book: SchemaBook = NO_SCHEMAS) -> Explanation:
    """Why the filter holds for the event, or why not. Agrees with `matches`."""
    with backtracking_regex.within(_PATIENCE):
        return explained(filter, reading(event, book))


def explained(filter: Filter, read: EventValues) -> Explanation:
    """The same for the values that `read` gives."""
    match filter:
        case AllOf(parts):
            found = tuple(explained(part, read) for part in parts)
            return Explanation(filter, all(part.holds for part in found), parts=found)
        case AnyOf(parts):
            found = tuple(explained(part, read) for part in parts)
            return Explanation(filter, any(part.holds for part in found), parts=found)
        case Not(part):
            inner = explained(part, read)
            return Explanation(filter, not inner.holds, parts=(inner,))
        case Always(value):
            return Explanation(filter, value)
    return _condition(filter, read)


def _condition(leaf: Leaf, read: EventValues) -> Explanation:
    with backtracking_regex.within() as given:
        found = read(leaf.path)
        holds = test_of(leaf)(found)
    if found is MISSING and isinstance(leaf.path, OnlyScalarPath):
        found = read(ScalarsPath(leaf.path.query, leaf.path.limit))
    return Explanation(leaf, holds, found, cause=read.troubles.get(leaf.path, given.cause))


def _found_as_json(found: object) -> dict[str, Any]:
    if found is MISSING:
        return {"missing": True}
    if isinstance(found, tuple):
        return {"values": [_as_json(value) for value in found[:_VALUES]]}
    return {"found": _as_json(found)}


def _as_json(value: object) -> object:
    """The value as plain JSON that keeps its meaning; what is long or cannot be kept becomes a short text."""
    match value:
        case bool() | None:
            return value
        case str():
            return value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…"
        case int() if value.bit_length() < 64:
            return value
        case Decimal() if Decimal(float(value)).is_finite() and Decimal(repr(float(value))) == value:
            return float(value)
    return _as_text(value)


def _as_text(value: object) -> str:
    match value:
        case str():
            return shortened(value, _SHOWN)
        case Decimal():
            return _cut(str(value))
        case int() if not isinstance(value, bool):
            return _cut(str(Decimal(value)))
        case tuple():
            return _several(value)
        case list():
            return f"an array of {len(value)}"
        case dict():
            return f"an object of {len(value)}"
    return "nothing" if value is MISSING else msgspec.json.encode(value).decode()


def _several(values: tuple[object, ...]) -> str:
    if not values:
        return "no values"
    shown = ", ".join(_as_text(value) for value in values[:_VALUES])
    return _cut(f"{len(values)} value{'s' * (len(values) > 1)}: {shown}")


def _cut(text: str) -> str:
    """At most 200 characters of it."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
