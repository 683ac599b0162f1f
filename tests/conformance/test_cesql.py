"""The CESQL conformance kit (CT-15), with the one case in which it contradicts the text of the specification."""

from __future__ import annotations

import pytest

from tests.conformance import SHARED_DATA
from tests.conformance.suites import Case
from tests.conformance.suites.cesql import KNOWN_DIFFERENCES, cases

FILES = sorted((SHARED_DATA / "cesql_tck").glob("*.yaml"))
CASES = [case for file in FILES for case in cases(file)]

pytestmark = pytest.mark.skipif(not FILES, reason="the conformance kit is not here")


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_the_kit_agrees_or_the_difference_is_known(case: Case) -> None:
    difference = case.check()
    if case.id in KNOWN_DIFFERENCES:
        assert difference is not None
        assert difference[1] == KNOWN_DIFFERENCES[case.id]
    else:
        assert difference is None


def test_every_known_difference_is_a_case_of_the_kit() -> None:
    assert KNOWN_DIFFERENCES.keys() <= {case.id for case in CASES}
    assert len(CASES) == 275
