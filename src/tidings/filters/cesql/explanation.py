"""Says what came of an expression: its value, its error, and the same for each part that was evaluated."""

from __future__ import annotations

from typing import Any

from tidings.errors import shortened
from tidings.filters.cesql.expression import EvaluatedStep, parse, steps
from tidings.filters.cesql.values import Value, to_string

_SHOWN = 200
_PARTS = 50
_PARTS_IN_LINE = 6


def as_json(text: str, found: Any) -> dict[str, Any]:
    """Value, error and parts, ready to be written as JSON. `found` holds the values of the expression's attributes."""
    *parts, whole = steps(parse(text), found)
    return _step(whole) | {"parts": [{"expression": part.text} | _step(part) for part in parts[:_PARTS]]}


def line(text: str, found: Any) -> str:
    """The same on one line: the value, the reason of an error, and the first parts."""
    *parts, whole = steps(parse(text), found)
    about = f" ({whole.about})" if whole.error else ""
    given = [f"{_cut(part.text)} is {_result(part)}" for part in parts if not part.error]
    beside = "; ".join(dict.fromkeys(given[:_PARTS_IN_LINE]))
    return f"it is {_result(whole)}{about}" + (f"; {beside}" if beside else "")


def _step(step: EvaluatedStep) -> dict[str, Any]:
    found: dict[str, Any] = {"value": _cut(step.value) if isinstance(step.value, str) else step.value}
    return found | {"error": str(step.error), "reason": step.about} if step.error else found


def _result(step: EvaluatedStep) -> str:
    value = _written(step.value)
    return f"{value} with the error {step.error}" if step.error else value


def _written(value: Value) -> str:
    return shortened(value, _SHOWN) if isinstance(value, str) else to_string(value)


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
