"""What the hub's processes cost: memory and CPU of each part with all its descendants, read from /proc."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from tests.hub import PARTS, Hub

_TICK = os.sysconf("SC_CLK_TCK")


def memory(hub: Hub) -> dict[str, float]:
    """MiB of each part."""
    return {part: sum(map(share_of, pids)) / (1 << 20) for part, pids in pids_of(hub).items()}


def cpu_seconds(hub: Hub) -> float:
    """CPU seconds that all processes of the hub have used so far."""
    return sum(_cpu(pid) for pids in pids_of(hub).values() for pid in pids)


def cpu_of(pid: int) -> float:
    """CPU seconds that a process and its descendants have used so far."""
    return sum(map(_cpu, _with_descendants(pid, _children())))


def pids_of(hub: Hub) -> dict[str, list[int]]:
    """The processes of each part."""
    children = _children()
    found = {part: _with_descendants(pid, children) for part in PARTS if (pid := hub.child(part)) is not None}
    taken = {pid for pids in found.values() for pid in pids}
    found["supervisor"] = [pid for pid in _with_descendants(hub.pid, children) if pid not in taken]
    return found


def _with_descendants(pid: int, children: dict[int, list[int]]) -> list[int]:
    return [pid, *(each for child in children.get(pid, ()) for each in _with_descendants(child, children))]


def _children() -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for pid in _all():
        fields = _stat(pid)
        if fields:
            found.setdefault(int(fields[1]), []).append(pid)
    return found


def _all() -> Iterable[int]:
    return (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())


def _stat(pid: int) -> list[str]:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def share_of(pid: int) -> int:
    """Bytes of memory: pages that several processes share count in parts (forked Spark workers share most of theirs)."""
    try:
        lines = (Path("/proc") / str(pid) / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


def _cpu(pid: int) -> float:
    """User and system time of the process and of its children that have ended."""
    fields = _stat(pid)
    return sum(map(int, fields[11:15])) / _TICK if fields else 0.0
