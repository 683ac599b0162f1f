"""Horizon's simple `selectionFilter` (HOR-92, HOR-93, HOR-175).

| written | means | refused |
|---|---|---|
| `{"pets.cat.color": "tabby"}` | the scalar at the dotted path, as text, equals it, letter case too | a value that is no scalar |
| `{"toys.0": "ball"}` | a name of digits is an element where it meets an array | |
| `{"$.a": "x"}` | `$` is a name like any other | |
| `{"a": 12, "b": true}` | a number or boolean counts as its text | |
| several entries | all of them; of none: always | more than 500 |

12 has the text `12`, 12.0 `12.0`, true `true`, null `null`. Arrays and objects never match. Names with dots cannot be reached.
"""

from __future__ import annotations

from decimal import Decimal

from tidings.errors import FilterSyntaxError
from tidings.filters.algebra import Compare, Filter, Order, all_of, literal
from tidings.filters.dialects.documents import placed
from tidings.filters.java_text import scalar_text
from tidings.filters.paths import MemberTextPath

MAX_ENTRIES = 500


def parse(raw: object) -> Filter:
    """The filter that this object stands for. Raises FilterSyntaxError with the key."""
    if not isinstance(raw, dict):
        raise FilterSyntaxError("the filter is no object", found=raw, expected="an object of dotted paths and texts")
    if len(raw) > MAX_ENTRIES:
        raise FilterSyntaxError("the filter has too many entries", found=len(raw), expected=f"at most {MAX_ENTRIES}")
    return all_of(*(_entry(key, value) for key, value in raw.items()))


def _entry(key: object, value: object) -> Filter:
    if not isinstance(key, str):
        raise FilterSyntaxError("this is no path", found=key, expected="a text such as order.state")
    if not isinstance(value, (str, bool, int, float, Decimal)):
        raise FilterSyntaxError("the value is no text", at=key, found=value, expected="a text, number or boolean")
    return placed(key, lambda: Compare(MemberTextPath(tuple(key.split("."))), Order.EQ, literal(scalar_text(value))))
