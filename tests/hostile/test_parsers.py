"""No document from outside ends a process, or keeps it busy."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hostile.parsers import PARSERS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("parser", PARSERS)
def test_no_document_ends_the_process_that_reads_it_or_keeps_it_busy(parser: str) -> None:
    command = [sys.executable, "-m", "tests.hostile.child", parser]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert ran.returncode == 0, told(ran)


def told(ran: subprocess.CompletedProcess[str]) -> str:
    how = f"signal {signal.Signals(-ran.returncode).name}" if ran.returncode < 0 else f"exit code {ran.returncode}"
    last = [line for line in ran.stdout.splitlines() if not line.startswith(" ")][-1:]
    return f"{how} at {last}\n{ran.stderr[-3000:]}"
