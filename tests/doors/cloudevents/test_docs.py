"""docs/cloudevents.md is run, block by block, against a running hub."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hub import Hub
from tests.pages import check_python, needs_curl, run_page

PAGE = "cloudevents.md"


@pytest.mark.hub
@pytest.mark.spark
@needs_curl
def test_every_block_of_the_page_runs(hub: Hub, tmp_path: Path) -> None:
    run_page(PAGE, hub, tmp_path)


def test_the_python_block_is_python() -> None:
    check_python(PAGE)
