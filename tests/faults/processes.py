"""The processes of a running hub, by the names of its parts; killing them, and letting them stand still."""

from __future__ import annotations

import os
import signal
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.hub import Hub

SUPERVISOR, JAVA, WORKER = "supervisor", "java", "worker"


class Family:
    """A process and all its descendants as they are now, parents first. What took over the number of one is none of them."""

    def __init__(self, pid: int) -> None:
        children: dict[int, list[int]] = defaultdict(list)
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and (stat := _stat(int(entry.name))):
                children[int(stat[1])].append(int(entry.name))
        pids = [pid]
        for one in pids:
            pids += children[one]
        self._started = {one: _started(one) for one in pids}

    def pids(self) -> list[int]:
        """Those that are still there."""
        return [pid for pid, started in self._started.items() if started and _started(pid) == started]

    def kill(self, within: float = 30) -> None:
        """kill -9 of all of them; returns when they are gone."""
        give_up = time.monotonic() + within
        while left := self.pids():
            assert time.monotonic() < give_up, f"processes {left} do not end"
            _signal(left, signal.SIGKILL)
            time.sleep(0.02)


def pid_of(hub: Hub, part: str) -> int | None:
    """The process of a part, the supervisor, the pipeline's Java, or the newest of Spark's workers; None while there is none."""
    if part == SUPERVISOR:
        return hub.pid
    if part not in (JAVA, WORKER):
        return hub.child(part)
    pipeline = hub.child("pipeline")
    java = next((one for one in Family(pipeline).pids() if _name(one) == "java"), None) if pipeline else None
    if part == JAVA or java is None:
        return java
    # Spark's daemon is the child of Java, and its workers are children of the daemon: the last ones in the family.
    return next((one for one in reversed(Family(java).pids()) if _name(one).startswith("python")), None)


def kill(hub: Hub, part: str) -> bool:
    """kill -9; whether there was anything to kill."""
    if part not in (JAVA, WORKER):
        return hub.kill(part)
    pid = pid_of(hub, part)
    if pid is not None:
        _signal([pid], signal.SIGKILL)
    return pid is not None


@contextmanager
def standing_still(pids: list[int]) -> Iterator[None]:
    """SIGSTOP, and SIGCONT at the end."""
    try:
        _signal(pids, signal.SIGSTOP)
        yield
    finally:
        _signal(pids[::-1], signal.SIGCONT)


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _name(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def _stat(pid: int) -> list[str]:
    """State, parent, and so on. The name before them is in parentheses and may hold anything."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return []


def _started(pid: int) -> str:
    """When a process started, in ticks since the machine did; empty when it has ended."""
    stat = _stat(pid)
    return stat[19] if stat and stat[0] not in "ZX" else ""
