"""CESQL 1.0 as a dialect of its own: the text of one expression.

| written | means |
|---|---|
| `type = 'order.created' AND subject LIKE 'eu-%'` | the expression is true for the event's attributes, without an error |
| an integer or text as result, or any error | does not hold: a missing attribute is an error, except under EXISTS |

Refused, with the column: what cannot be parsed; an unknown function or a wrong number of arguments; more than 4,096 characters
or 100 levels. `tidings.filters.cesql.parser` has the grammar.
"""

from __future__ import annotations

from tidings.filters.algebra import Filter, cesql_of


def parse(raw: object) -> Filter:
    """The filter that the expression stands for. Raises FilterSyntaxError with the column."""
    return cesql_of(raw)
