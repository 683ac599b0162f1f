"""docs/hermes.md is run, block by block, against a running hub."""

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
PAGE = ROOT / "docs" / "hermes.md"

pytestmark = [
    pytest.mark.hub,
    pytest.mark.spark,
    pytest.mark.skipif(shutil.which("curl") is None, reason="the page uses curl"),
]


def test_every_block_of_the_page_runs(hub: Hub, tmp_path: Path) -> None:
    port = str(free_port())
    blocks = re.findall(r"(?ms)^```sh\n(.*?)^```", PAGE.read_text("utf-8"))
    script = "set -euo pipefail\n" + "\n".join(blocks).replace("9000", port)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environ = {**os.environ, "PATH": path, "TIDINGS_URL": hub.url}
    ran = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=720)
    assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr}"
