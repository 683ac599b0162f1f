"""What a process of the hub, or a command, says with its exit code."""

from __future__ import annotations

DONE = 0
FAILED = 1
MISCONFIGURED = 2
"""Also: called wrongly. Starting it again the same way will not help."""
UNREACHABLE = 3
