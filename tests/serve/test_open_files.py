"""The limit of open files is raised as far as it may be, and never lowered."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import resource
from tidings.serve.open_files import allow_many
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, min(hard, 512) if hard != resource.RLIM_INFINITY else 512))
print(allow_many(), *resource.getrlimit(resource.RLIMIT_NOFILE), allow_many())
"""


def test_a_process_takes_what_the_machine_allows() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["512"] * 4
