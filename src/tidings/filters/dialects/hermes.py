"""Hermes' filter chain: a list of filters that must all pass (HER-113 to HER-125).

| written | means | refused |
|---|---|---|
| `{"type": "jsonpath", "path": "$.a", "matcher": "x.*"}` | the text of each value fits as a whole | broken paths, expressions |
| `"matchingStrategy": "any"` | some value does; `all` is the default | other words (any letter case) |
| `{"type": "avropath", "path": ".a.b[*]", …}` | the same in a decoded Avro payload | what is no name, `[n]` or `[*]` |
| `{"type": "header", "header": "Trace-Id", "matcher": "x"}` | the header fits; its name in any letter case | a matchingStrategy |
| `[]` | always | |

No value found: it does not pass, whatever the strategy. Values are compared as Java writes them, see `QueryTextPath`; null has
no text. A path without leading `$` or `@` gets `$.` in front, so `.name` finds names at any depth; one that ends in a function
never passes. In Avro, a last name that is missing, null and an index out of range have the text `null`. Refused too: unknown
types, members missing or unknown, more than 100 filters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tidings.errors import FilterSyntaxError
from tidings.filters import backtracking_regex
from tidings.filters.algebra import Always, Compare, Each, Filter, Order, Quantifier, Text, TextOp, all_of, literal
from tidings.filters.dialects.documents import placed
from tidings.filters.paths import (
    ITEM,
    AvroTextPath,
    AvroTextsPath,
    HeaderPath,
    Path,
    QueryTextPath,
    QueryTextsPath,
    ValuesPath,
    compiled,
)

MAX_FILTERS = 100
_MEMBERS = {
    "jsonpath": ("path", "matcher", "matchingStrategy"),
    "avropath": ("path", "matcher", "matchingStrategy"),
    "header": ("header", "matcher"),
}
_FUNCTION = re.compile(r"\.\w+\([^\[\]]*\)\s*")
_AVRO_PART = re.compile(r"([^.\[\]]+)(?:\[(\*|\d{1,9})\])?")
_SIGNS = re.compile(r"[\\.\[\]{}()*+?^$|]")


def parse(raw: object) -> Filter:
    """The filter that the chain stands for. Raises FilterSyntaxError with the place, such as `filters[0].matcher`."""
    if not isinstance(raw, list):
        raise FilterSyntaxError("the filters are no list", at="filters", found=raw, expected="a list of filters")
    if len(raw) > MAX_FILTERS:
        raise FilterSyntaxError("there are too many filters", at="filters", found=len(raw), expected=f"at most {MAX_FILTERS}")
    return all_of(*(_one(one, f"filters[{number}]") for number, one in enumerate(raw)))


def _one(raw: object, at: str) -> Filter:
    if not isinstance(raw, dict):
        raise FilterSyntaxError(
            "this is no filter", at=at, found=raw, expected="an object with type, path or header, and matcher"
        )
    kind = raw.get("type")
    members = _MEMBERS.get(kind) if isinstance(kind, str) else None
    if members is None:
        raise FilterSyntaxError("this type of filter is not known", at=f"{at}.type", found=kind, expected=" or ".join(_MEMBERS))
    for name in raw:
        if name != "type" and name not in members:
            place = f"{at}.{name}"
            raise FilterSyntaxError("this member is not known here", at=place, found=name, expected=" or ".join(members))
    return _filter(str(kind), raw, at)


def _filter(kind: str, raw: Mapping[str, Any], at: str) -> Filter:
    matcher = _text(raw, "matcher", at)
    placed(f"{at}.matcher", lambda: Text(ITEM, TextOp.WHOLE, matcher))
    if kind == "header":
        header = _text(raw, "header", at)
        return _fits(placed(f"{at}.header", lambda: HeaderPath(header.lower())), matcher)
    path, over = _text(raw, "path", at), _over(raw, at)
    if kind == "avropath":
        return _avro_fits(_avro_steps(path, f"{at}.path"), f"{at}.path", over, matcher)
    return placed(f"{at}.path", lambda: _queried(path, over, matcher))


def _queried(path: str, over: Quantifier, matcher: str) -> Filter:
    found = compiled(path, backtracking_regex.is_allowed())
    if _FUNCTION.search(path) and path.rstrip().endswith(")"):
        return Always(False)
    if found.definite:
        return _fits(QueryTextPath(path), matcher)
    several: ValuesPath = QueryTextsPath(path)
    return Each(several, over, _fits(ITEM, matcher))


def _fits(path: Path, matcher: str) -> Compare | Text:
    """A matcher without special signs is plain equality, which is cheaper to look for."""
    if _SIGNS.search(matcher):
        return Text(path, TextOp.WHOLE, matcher)
    return Compare(path, Order.EQ, literal(matcher))


def _over(raw: Mapping[str, Any], at: str) -> Quantifier:
    strategy = raw.get("matchingStrategy", "all")
    match strategy.lower() if isinstance(strategy, str) else strategy:
        case "all":
            return Quantifier.EVERY
        case "any":
            return Quantifier.SOME
    raise FilterSyntaxError(
        "this matching strategy is not known", at=f"{at}.matchingStrategy", found=strategy, expected="all or any"
    )


def _avro_fits(steps: tuple[str | int | None, ...], at: str, over: Quantifier, matcher: str) -> Filter:
    one = tuple(step for step in steps if step is not None)
    if len(one) == len(steps):
        return _fits(placed(at, lambda: AvroTextPath(one)), matcher)
    return Each(placed(at, lambda: AvroTextsPath(steps)), over, _fits(ITEM, matcher))


def _avro_steps(path: str, at: str) -> tuple[str | int | None, ...]:
    steps: list[str | int | None] = []
    for part in path.removeprefix(".").split("."):
        found = _AVRO_PART.fullmatch(part)
        if found is None:
            raise FilterSyntaxError("this is no step of an Avro path", at=at, found=part, expected="name, name[3] or name[*]")
        steps.append(found[1])
        if found[2] is not None:
            steps.append(None if found[2] == "*" else int(found[2]))
    return tuple(steps)


def _text(raw: Mapping[str, Any], name: str, at: str) -> str:
    value = raw.get(name)
    if not isinstance(value, str) or (not value and name != "matcher"):
        raise FilterSyntaxError(f"the {name} is missing", at=f"{at}.{name}", found=value, expected="a text")
    return value
