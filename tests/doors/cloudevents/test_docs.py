"""docs/cloudevents.md is run, block by block, against a running hub."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hub import Hub, free_port

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "cloudevents.md"

pytestmark = [
    pytest.mark.hub,
    pytest.mark.spark,
    pytest.mark.skipif(shutil.which("curl") is None, reason="the page uses curl"),
]


def blocks(kind: str) -> list[str]:
    return re.findall(rf"(?ms)^```{kind}\n(.*?)^```", PAGE.read_text("utf-8"))


def test_every_block_of_the_page_runs(hub: Hub, tmp_path: Path) -> None:
    port = str(free_port())
    script = "set -euo pipefail\n" + "\n".join(blocks("sh")).replace("9000", port)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environ = {**os.environ, "PATH": path, "TIDINGS_URL": hub.url}
    ran = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=180)
    assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr}"


def test_the_python_block_is_python() -> None:
    for block in blocks("python"):
        exec(compile(block, str(PAGE), "exec"), {})
