"""The JSONPath compliance suite (RFC 9535): `tests[]` with a selector that is refused, or its result on a document."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.conformance.suites import Case, Difference, NotThisFormat, case_of
from tidings.errors import FilterSyntaxError
from tidings.filters.jsonpath import compile


def cases(file: Path) -> Iterator[Case]:
    # Numbers are read as the hub reads them: exactly.
    document = json.loads(file.read_text("utf-8"), parse_float=Decimal)
    if not isinstance(document, dict) or not isinstance(document.get("tests"), list):
        raise NotThisFormat("it has no list `tests`")
    for number, test in enumerate(document["tests"]):
        yield case_of(test, f"tests-{number}", difference)


def difference(test: dict[str, Any]) -> Difference | None:
    return refused(test["selector"]) if test.get("invalid_selector") else found(test)


def refused(selector: str) -> Difference | None:
    try:
        compile(selector, "rfc9535")
    except FilterSyntaxError:
        return None
    return "refused", "accepted"


def found(test: dict[str, Any]) -> Difference | None:
    allowed = test["results"] if "results" in test else [test["result"]]
    got = list(compile(test["selector"], "rfc9535").find(test["document"]).values)
    if any(same(got, one) for one in allowed):
        return None
    return (allowed[0] if len(allowed) == 1 else f"one of {allowed!r}"), got


def same(one: object, other: object) -> bool:
    """Equal as JSON: true is not 1, and the order of members does not matter."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    return isinstance(one, bool) is isinstance(other, bool) and one == other
