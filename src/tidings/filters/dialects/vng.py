"""The filters of the VNG notification API (VNG-12 to VNG-17, VNG-80 to VNG-83).

| written | means | refused |
|---|---|---|
| `{"source": "a", "types": ["b", "c"], "filters": […]}` | all of it; each may be left out | other words |
| `[…]` | every one; of none: always; a single object is a list of one | |
| `{"exact": {"type": "a", "Subject": "b"}}` | both attributes, as text, equal these; `{}` holds always | values that are no text |
| `{"prefix": {…}}`, `{"suffix": {…}}` | all of them begin, or end, with these texts | |
| `{"all": […]}`, `{"any": […]}` | every one, some one | an empty list |
| `{"not": {…}}` | not this one | a list |

Names of attributes are read in any letter case and may have dots or anything else in them; values are compared as they are. An
empty text wants an attribute that is there and empty, with `prefix` and `suffix` too. What is no attribute (`data`,
`data_base64`) may be named and never matches.
Refused too: `sql` and every other word, an object with no key or several, depth over 32, more than 500 parts.
"""

from __future__ import annotations

import re

from tidings.errors import FilterSyntaxError
from tidings.events.attribute_names import attribute_key
from tidings.filters.algebra import Always, Compare, Filter, Literal, Not, OneOf, Order, Text, TextOp, all_of, any_of, literal
from tidings.filters.dialects.documents import placed
from tidings.filters.paths import AttributeTextPath

MAX_DEPTH = 32
MAX_PARTS = 500

_DIALECTS = "exact, prefix, suffix, all, any or not"
_CRITERIA = frozenset(("source", "types", "filters"))
_PLAIN = re.compile(r"[a-z0-9]{1,128}")
_PAYLOAD = ("data", "data_base64")


def parse(raw: object) -> Filter:
    """The filter that these objects stand for. Raises FilterSyntaxError with the place, such as `filters[0].any[1].exact`."""
    if isinstance(raw, dict) and not raw.keys().isdisjoint(_CRITERIA):
        return _criteria(raw)
    return _filters(raw)


def _criteria(raw: dict[str, object]) -> Filter:
    for word in raw.keys() - _CRITERIA:
        expected = "source, types and filters"
        raise FilterSyntaxError("this word is not known beside them", at=str(word), found=word, expected=expected)
    source, types = raw.get("source"), raw.get("types", [])
    parts: list[Filter] = []
    if source is not None:
        parts.append(Compare(AttributeTextPath("source"), Order.EQ, _literal(source, "source")))
    if not isinstance(types, list):
        raise FilterSyntaxError("the types are no list", at="types", found=types, expected="a list of texts")
    if types:
        texts = [_literal(one, f"types[{number}]") for number, one in enumerate(types)]
        parts.append(OneOf(AttributeTextPath("type"), tuple(dict.fromkeys(texts))))
    return all_of(*parts, _filters(raw.get("filters", [])))


def _literal(text: object, at: str) -> Literal:
    if not isinstance(text, str):
        raise FilterSyntaxError("the value is no text", at=at, found=text, expected="a text")
    return placed(at, lambda: literal(text))


def _filters(raw: object) -> Filter:
    entries = [raw] if isinstance(raw, dict) else raw
    if not isinstance(entries, list):
        raise FilterSyntaxError("the filters are no list", at="filters", found=raw, expected="a list of filter objects")
    reader = _Reader()
    return all_of(*(reader.one(entry, f"filters[{number}]", 1) for number, entry in enumerate(entries)))


class _Reader:
    """Reads filter objects and counts them, so that no input costs more than the limits."""

    def __init__(self) -> None:
        self._parts = 0

    def one(self, raw: object, at: str, depth: int) -> Filter:
        self._count(at, depth)
        if not isinstance(raw, dict) or len(raw) != 1:
            raise FilterSyntaxError("a filter has exactly one key", at=at, found=raw, expected=_DIALECTS)
        ((word, inner),) = raw.items()
        place = f"{at}.{word}"
        match word:
            case "all" | "any":
                parts = self._several(inner, place, depth + 1)
                return all_of(*parts) if word == "all" else any_of(*parts)
            case "not":
                return Not(self.one(inner, place, depth + 1))
            case "exact" | "prefix" | "suffix":
                return all_of(*self._attributes(word, inner, place))
        raise FilterSyntaxError("this word is not known here", at=place, found=word, expected=_DIALECTS)

    def _several(self, raw: object, at: str, depth: int) -> list[Filter]:
        if not isinstance(raw, list) or not raw:
            raise FilterSyntaxError("filters are missing", at=at, found=raw, expected="a list of at least one filter object")
        return [self.one(part, f"{at}[{number}]", depth) for number, part in enumerate(raw)]

    def _attributes(self, word: str, raw: object, at: str) -> list[Filter]:
        if not isinstance(raw, dict):
            raise FilterSyntaxError("attributes are missing", at=at, found=raw, expected="an object of names and texts")
        return [self._attribute(word, name, text, f"{at}.{name}") for name, text in raw.items()]

    def _attribute(self, word: str, name: object, text: object, at: str) -> Filter:
        self._count(at, 1)
        if not isinstance(name, str) or not isinstance(text, str):
            raise FilterSyntaxError("the value is no text", at=at, found=text, expected="a text")
        return placed(at, lambda: _condition(word, name, text))

    def _count(self, at: str, depth: int) -> None:
        self._parts += 1
        if depth > MAX_DEPTH or self._parts > MAX_PARTS:
            expected = f"at most {MAX_DEPTH} levels and {MAX_PARTS} parts"
            raise FilterSyntaxError("the filter is too complex", at=at, expected=expected)


def _condition(word: str, name: str, text: str) -> Filter:
    wanted = literal(text)
    key = attribute_key(name)
    if not key or key in _PAYLOAD:
        return Always(False)
    path = AttributeTextPath(key, free=not _PLAIN.fullmatch(key))
    if word == "exact" or not text:
        return Compare(path, Order.EQ, wanted)
    return Text(path, TextOp.PREFIX if word == "prefix" else TextOp.SUFFIX, text)
