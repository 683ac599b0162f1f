"""docs/feeds.md: every block is run, in order, against an api process of its own."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.api_process import ApiProcess, an_api

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[3] / "docs" / "feeds.md"
HUB = "http://127.0.0.1:8484"


class Block(NamedTuple):
    kind: str
    text: str


def blocks() -> list[Block]:
    return [Block(*found) for found in re.findall(r"^```([a-z ]+)\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)]


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiProcess]:
    monkeypatch.chdir(tmp_path)
    with an_api(tmp_path / "data") as running:
        yield running


def shell(api: ApiProcess, text: str) -> str:
    """A block as it would be typed; every command of it has to succeed."""
    script = f'tidings() {{ "{sys.executable}" -m tidings.cli "$@"; }}\nset -eo pipefail\n' + text.replace(HUB, url(api))
    ran = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, timeout=120, env={**os.environ, "TIDINGS_URL": url(api)}
    )
    assert ran.returncode == 0, f"{text}\n{ran.stderr}"
    assert '"code"' not in ran.stdout, ran.stdout
    return ran.stdout


def python(api: ApiProcess, text: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(text.replace(HUB, url(api)), str(PAGE), "exec"), {"__name__": "example"})
    return out.getvalue()


def url(api: ApiProcess) -> str:
    return f"http://127.0.0.1:{api.port}"


def test_the_examples_work_as_they_are_written(api: ApiProcess) -> None:
    said = [
        shell(api, block.text) if block.kind == "sh" else python(api, block.text)
        for block in blocks()
        if "spark" not in block.kind
    ]
    told = "".join(said)
    assert '{"cursor":' in told and '"ce_type":"order.created"' in told
    assert "3 events forwarded" in told
    import sqlite3

    assert sqlite3.connect("shop.db").execute("SELECT sum(n) FROM orders").fetchone() == (10,)
    assert "takes cursors of" in told and "nightly" in told


@pytest.mark.spark
def test_the_example_with_spark_makes_a_table(api: ApiProcess, spark: SparkSession) -> None:
    first, *_, with_spark = blocks()[0], *[block for block in blocks() if "spark" in block.kind]
    shell(api, first.text)
    # Spark's own idea of the present folder is the one its Java was started in.
    python(api, with_spark.text.replace('"orders.', f'"{Path.cwd()}/orders.'))
    assert spark.read.parquet(f"{Path.cwd()}/orders.parquet").count() == 3
