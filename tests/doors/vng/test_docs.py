"""docs/vng.md is run, block by block, against a running hub."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.hub import Hub
from tests.pages import DOCS, needs_curl, run_page
from tidings import config

PAGE = "vng.md"


@pytest.mark.hub
@pytest.mark.spark
@needs_curl
def test_every_block_of_the_page_runs(hub: Hub, tmp_path: Path) -> None:
    run_page(PAGE, hub, tmp_path)


def test_the_table_of_settings_is_that_of_the_hub() -> None:
    shown = dict(re.findall(r"(?m)^\| `(\w+)` \| `([^`]*)` \|", (DOCS / PAGE).read_text("utf-8").partition("## Settings")[2]))
    assert shown.keys() == set(config.VngSettings.__annotations__) - {"port"}
    defaults = config.load(environ={}).vng
    for name, text in shown.items():
        word = text.strip('"')
        value = getattr(defaults, name)
        known = {True: "true", False: "false"}.get(value, value) if isinstance(value, bool) else value
        assert known == (config.seconds(word) if name == "retry_horizon" else word) or str(list(value)) == text
