"""CESQL 1.0, the expression language of CloudEvents: texts are parsed once, compiled to functions, and never raise afterwards.

Knows attributes only, no payload. Imports `tidings.errors` and `tidings.filters.text_patterns`; the algebra's leaf `Cesql` and the
dialects are its callers.
"""

from __future__ import annotations

from tidings.filters.cesql.expression import EvaluatedStep, Expression, accepted, evaluate, parse, passes, steps
from tidings.filters.cesql.values import Error, Value

__all__ = ["Error", "EvaluatedStep", "Expression", "Value", "accepted", "evaluate", "parse", "passes", "steps"]
