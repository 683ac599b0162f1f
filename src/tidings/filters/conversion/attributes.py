"""Writes a filter as the objects of the CloudEvents Subscriptions API, or of the VNG notification API.

| plain | written |
|---|---|
| text of an attribute = t, begins with t, ends with t | `exact`, `prefix`, `suffix` |
| several of a kind that must all hold | one object of that kind |
| and, or, not | `all`, `any`, `not` |
| a wildcard at one end | `prefix`, `suffix` |
| an empty text | only `vng`: the attribute is there and empty |
| the attribute is there, and other conditions that CESQL has | only `cloudevents`: `sql` |
"""

from __future__ import annotations

from typing import Any, NoReturn

from tidings.errors import FilterSyntaxError
from tidings.filters import text_patterns
from tidings.filters.algebra import (
    AllOf,
    Always,
    AnyOf,
    Compare,
    Exists,
    Filter,
    Leaf,
    Literal,
    Not,
    OneOf,
    Order,
    Text,
    TextOp,
    any_of,
    literal,
)
from tidings.filters.conversion import cesql
from tidings.filters.conversion.cesql_logic import ALWAYS_THERE, TEXTS
from tidings.filters.conversion.differences import Differences, refuse
from tidings.filters.paths import AttributePath, AttributeTextPath, DataPath

_WORDS = {TextOp.PREFIX: "prefix", TextOp.SUFFIX: "suffix"}
_NEVER = {"all": [{"exact": {"type": "a"}}, {"exact": {"type": "b"}}]}


def cloudevents(filter: Filter, differences: Differences) -> Any:
    """The filter as objects of the CloudEvents Subscriptions API."""
    return _Writer("cloudevents").whole(filter)


def vng(filter: Filter, differences: Differences) -> Any:
    """The filter as objects of the VNG notification API."""
    return _Writer("vng").whole(filter)


class _Writer:
    """Writes for one of the two, which differ in what an empty text means and in what else they have."""

    def __init__(self, dialect: str) -> None:
        self._dialect = dialect

    def whole(self, filter: Filter) -> Any:
        return [] if filter == Always(True) else self._of(filter)

    def _of(self, filter: Filter) -> dict[str, Any]:
        match filter:
            case AllOf(parts):
                written = _merged([self._of(part) for part in parts if not _is_given(part)])
                return written[0] if len(written) == 1 else {"all": written}
            case AnyOf(parts):
                return {"any": [self._of(part) for part in parts]}
            case Not(part):
                return {"not": self._of(part)}
            case Always(value):
                return {"not": _NEVER} if value else _NEVER
            case Compare(path, Order.NE, value):
                return self._of(AllOf((Exists(path), Not(Compare(path, Order.EQ, value)))))
            case OneOf(path, values):
                return self._of(any_of(*(Compare(path, Order.EQ, value) for value in values)))
        if _is_given(filter):
            return {"not": _NEVER}
        try:
            return self._leaf(filter, self._name(filter))
        except FilterSyntaxError:
            if self._dialect != "cloudevents" or isinstance(filter.path, DataPath):
                raise
            return {"sql": cesql.written(filter, Differences())}

    def _leaf(self, leaf: Leaf, name: str) -> dict[str, Any]:
        match leaf:
            case Compare(_, Order.EQ, Literal(str(text))) if text or self._dialect == "vng":
                return {"exact": {name: text}}
            case Text(_, TextOp.PREFIX | TextOp.SUFFIX as op, text) if text:
                return {_WORDS[op]: {name: text}}
            case Text(path, TextOp.LIKE, pattern):
                match text_patterns.like_parts(pattern):
                    case (str(text),):
                        return self._leaf(Compare(path, Order.EQ, literal(text)), name)
                    case (str(text), part) if part is text_patterns.ANY:
                        return self._leaf(Text(path, TextOp.PREFIX, text), name)
                    case (part, str(text)) if part is text_patterns.ANY:
                        return self._leaf(Text(path, TextOp.SUFFIX, text), name)
        return self._refuse(leaf, "it compares attributes with whole texts, prefixes and suffixes only")

    def _name(self, leaf: Leaf) -> str:
        match leaf.path:
            case AttributeTextPath(name):
                return name
            case AttributePath(name) if name in TEXTS:
                return name
            case AttributePath(name):
                self._refuse(leaf, f"it compares attributes as text; write text(@{name})")
            case DataPath():
                self._refuse(leaf, "it looks at attributes, and this is a place in the payload; an attribute is written @name")
        return self._refuse(leaf, "it looks at attributes only")

    def _refuse(self, part: Filter, reason: str) -> NoReturn:
        refuse(part, self._dialect, reason)


def _is_given(part: Filter) -> bool:
    """Whether the part says only that there is an attribute which every event has."""
    match part:
        case Exists(AttributePath(name) | AttributeTextPath(name)):
            return name in ALWAYS_THERE
    return False


def _merged(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Conditions of one kind on different attributes come into one object, where the first of them stood."""
    merged: list[dict[str, Any]] = []
    for part in parts:
        ((word, inner),) = part.items()
        same = next((one[word] for one in merged if word in one and word in ("exact", "prefix", "suffix")), None)
        if same is not None and not inner.keys() & same.keys():
            same.update(inner)
        else:
            merged.append(part)
    return merged
