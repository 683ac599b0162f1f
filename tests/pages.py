"""Pages of the documentation whose blocks are run against a hub, one after the other."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hub import Hub, free_port

DOCS = Path(__file__).parents[1] / "docs"

needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="the page uses curl")


def blocks(page: str, kind: str) -> list[str]:
    """The blocks of a kind on a page."""
    return re.findall(rf"(?ms)^```{kind}\n(.*?)^```", (DOCS / page).read_text("utf-8"))


def run_page(page: str, hub: Hub, folder: Path) -> None:
    """Run every shell block of the page in this folder; its port 9000 is a free one."""
    script = "set -euo pipefail\n" + "\n".join(blocks(page, "sh")).replace("9000", str(free_port()))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environ = {**os.environ, "PATH": path, "TIDINGS_URL": hub.url}
    ran = subprocess.run(["bash", "-c", script], cwd=folder, env=environ, capture_output=True, text=True, timeout=720)
    assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr}"


def check_python(page: str) -> None:
    """Every Python block of the page can be run."""
    found = blocks(page, "python")
    assert found
    for block in found:
        exec(compile(block, page, "exec"), {})
