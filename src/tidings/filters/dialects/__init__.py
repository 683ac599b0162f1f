"""The dialects: each one file that reads what people write into the algebra. None evaluates anything.

A new dialect is a file with `parse(raw) -> Filter` and a line here. Only `tidings.filters` imports this package.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tidings.filters.algebra import Filter
from tidings.filters.dialects import cesql, cloudevents, eventbridge, hermes, vng, where
from tidings.filters.dialects.horizon import selection, simple

DIALECTS: Mapping[str, Callable[[object], Filter]] = {
    "where": where.parse,
    "cloudevents": cloudevents.parse,
    "cesql": cesql.parse,
    "eventbridge": eventbridge.parse,
    "horizon": selection.parse,
    "horizon-simple": simple.parse,
    "hermes": hermes.parse,
    "vng": vng.parse,
}
