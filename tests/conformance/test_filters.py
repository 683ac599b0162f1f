"""The published vectors of Horizon and Hermes, each a case."""

from __future__ import annotations

import pytest

from tests.conformance import SHARED_DATA
from tests.conformance.suites import Case, hermes, horizon

HORIZON, HERMES = SHARED_DATA / "filters" / "horizon.json", SHARED_DATA / "filters" / "hermes.json"

pytestmark = pytest.mark.skipif(not HORIZON.exists(), reason="the vectors are not here")


def every(suite: object, file: object) -> list[object]:
    found: list[Case] = list(suite.cases(file)) if file.exists() else []  # type: ignore[attr-defined]
    return [pytest.param(case, id=case.id) for case in found]


@pytest.mark.parametrize("case", every(horizon, HORIZON))
def test_horizon_decides_as_the_vector_says(case: Case) -> None:
    assert case.check() is None


@pytest.mark.parametrize("case", every(hermes, HERMES))
def test_hermes_decides_as_the_vector_says(case: Case) -> None:
    assert case.check() is None


def test_every_vector_is_run() -> None:
    assert len(list(horizon.cases(HORIZON))) == 170 + 27 + 15 + 31
    assert len(list(hermes.cases(HERMES))) == 132
