"""The JSONPath compliance suite (RFC 9535), and the places it says its results are at."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conformance import SHARED_DATA
from tests.conformance.run import failure
from tests.conformance.suites.jsonpath import cases
from tidings.filters.jsonpath import Location, compile

FILE = SHARED_DATA / "jsonpath_cts" / "cts.json"

pytestmark = pytest.mark.skipif(not FILE.exists(), reason=f"the JSONPath compliance suite is not in {FILE.parent}")


def test_every_case_of_the_suite_passes() -> None:
    found = list(cases(FILE))
    assert len(found) >= 703
    assert not [line for case in found if (line := failure(case))]


def normalized(location: Location) -> str:
    """The location as the RFC writes it: names in single quotes, control characters as escapes."""
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f"['{escaped(step)}']" for step in location)


def escaped(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)[1:-1].replace('\\"', '"').replace("'", "\\'")


def with_paths() -> list[dict[str, Any]]:
    tests = json.loads(FILE.read_text("utf-8"))["tests"] if FILE.exists() else []
    return [test for test in tests if "result_paths" in test or "results_paths" in test]


def test_every_value_is_found_where_the_suite_says() -> None:
    for test in with_paths():
        allowed = test.get("results_paths") or [test["result_paths"]]
        found = compile(test["selector"], "rfc9535").find(test["document"])
        assert [normalized(location) for location in found.locations] in allowed, test["name"]
