"""Horizon's trace of a filter that was tried: the operators as written, and the cause where one did not match (HOR-71)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidings.filters.dialects.horizon.selection import operator_of
from tidings.filters.explain import Explanation
from tidings.filters.payload import MISSING

INVALID_PAYLOAD = "The payload in the incoming event was no valid JSON. Therefore, the filters could not be applied."
_FAILED = "An exception occurred during the evaluation: \n"
_NAMES = {
    "eq": "equal",
    "ne": "not equal",
    "lt": "less than",
    "le": "less or equal",
    "gt": "greater than",
    "ge": "greater or equal",
    "rx": "regex",
    "in": "in",
    "nin": "nin",
    "ct": "contains",
    "nct": "not contains",
    "and": "and",
    "or": "or",
}
_CAUSES = {
    "eq": "Actual value did not equal expected value.",
    "ne": "Actual value was equal to unexpected value.",
    "lt": "Actual value was not less than expected value",
    "le": "Actual value was not less or equal than expected value.",
    "gt": "Actual value was not greater than expected value.",
    "ge": "Actual value was not greater or equal to expected value.",
    "rx": "Actual value did not match regex.",
    "in": "Actual value was not in expected values.",
    "nin": "Actual value was in expected values.",
    "ct": "Actual value did not contain expected value.",
    "nct": "Actual value did contain expected value.",
    "and": "Not all child-operators matched.",
    "or": "No child-operator matched.",
}
_NO_VALUE = "<Legacy> Could not find value at specified path."
_OTHER_VALUE = "<Legacy> Value at specified path does not match expected value."


def trace(raw: Mapping[str, Any], told: Explanation) -> dict[str, Any]:
    """The trace of an `advancedSelectionFilter`, from the explanation of what it was parsed into."""
    name, inner = operator_of(raw)
    if name not in ("and", "or"):
        return _node(name, told.holds, _cause(name, inner, told), inner["field"], inner["value"])
    parts = (told,) if len(inner) == 1 else told.parts
    children = [trace(part, explanation) for part, explanation in zip(inner, parts, strict=True)]
    return _logic(name, told.holds, children)


def simple_trace(raw: Mapping[str, Any], told: Explanation) -> dict[str, Any]:
    """The trace of a simple `selectionFilter`: its first entry that did not match (HOR-94)."""
    parts = (told,) if len(raw) == 1 else told.parts
    for (key, value), part in zip(raw.items(), parts, strict=bool(raw)):
        if not part.holds:
            return _node("eq", False, _NO_VALUE if part.found is MISSING else _OTHER_VALUE, key, value)
    return _logic("and", True, [_node("eq", True, "", key, value) for key, value in raw.items()])


def merged_trace(children: list[dict[str, Any]]) -> dict[str, Any]:
    """The trace of several scopes' filters, one of which must match (HOR-103)."""
    return _logic("or", any(child["match"] for child in children), children)


def invalid_payload_trace() -> dict[str, Any]:
    """What is told when the payload is no JSON, whatever the filter."""
    return _node("ne", False, INVALID_PAYLOAD, "", "")


def _logic(name: str, match: bool, children: list[dict[str, Any]]) -> dict[str, Any]:
    node: dict[str, Any] = {"operatorName": _NAMES[name], "match": match}
    if not match:
        node["causeDescription"] = _CAUSES[name]
    return node | ({"childOperators": children} if children else {})


def _node(name: str, match: bool, cause: str, path: str, value: object) -> dict[str, Any]:
    node: dict[str, Any] = {"operatorName": _NAMES[name], "match": match}
    if not match:
        node["causeDescription"] = cause
    return node | {"operator": {"operator": name.upper(), "expectedValue": value, "jsonPath": path}}


def _cause(name: str, inner: Mapping[str, Any], told: Explanation) -> str:
    """Why an operator did not match: it could not be evaluated, or its own reason."""
    found, path = _first(told), inner["field"]
    if found.cause:
        return f"{_FAILED}{found.cause}"
    if found.found is MISSING:
        return f"{_FAILED}No results for path: {path}"
    if name in ("ct", "nct"):
        return _CAUSES[name]
    if isinstance(found.found, tuple):
        many = len(found.found)
        return f'{_FAILED}The evaluation of "{path}" did not return a single value. Expected 1 value, got {many}.'
    return _of_one_value(name, inner["value"], found.found)


def _of_one_value(name: str, wanted: object, found: object) -> str:
    if name == "rx" and not isinstance(found, str):
        return f"{_FAILED}A regular expression needs a text, not {_kind(found)}."
    if name in ("lt", "le", "gt", "ge") and _kind(found) != _kind(wanted):
        return f"{_FAILED}{_kind(found)} cannot be ordered with {_kind(wanted)}.".replace("\na ", "\nA ")
    return _CAUSES[name]


def _first(told: Explanation) -> Explanation:
    """The condition that looked at the operator's path: an operator may be several conditions, all at the same path."""
    while told.parts:
        told = told.parts[0]
    return told


def _kind(value: object) -> str:
    match value:
        case bool():
            return "a boolean"
        case str():
            return "a text"
        case list():
            return "a list"
    return "a number"
