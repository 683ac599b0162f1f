"""No body ends the api, or keeps it busy, whichever door it is sent to."""

from __future__ import annotations

import subprocess
import sys

from tests.hostile.test_parsers import ROOT, told


def test_no_body_ends_the_api_or_keeps_it_busy() -> None:
    command = [sys.executable, "-m", "tests.hostile.doors"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert ran.returncode == 0, told(ran)
    assert ran.stdout.count("/horizon/") > 20 and ran.stdout.count("/api/") > 100, "the doors describe no operations"
