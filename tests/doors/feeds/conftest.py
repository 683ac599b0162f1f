"""One api part for all tests of a module: each test has a topic of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.api_process import ApiProcess, an_api


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    with an_api(tmp_path_factory.mktemp("feeds")) as running:
        yield running
