"""The machine: Python, Java, memory, disk, port, clock, open files."""

from __future__ import annotations

import platform
import resource
import shutil
import sys
import time
from pathlib import Path

from tidings.config import Settings
from tidings.doctor.finding import DoctorFinding, DoctorVerdict, at_least
from tidings.errors import JavaMissing, Misconfigured
from tidings.java import find_java
from tidings.serve.start_checks import check_port, check_settings

MEMORY_ENOUGH, MEMORY_NEEDED = 3 << 30, 3 << 29
DISK_ENOUGH = 4 << 30
FILES_ENOUGH = 4096
_EARLIEST = 1_735_689_600
"""2025-01-01: a clock before this was never set."""


def look(settings: Settings, hub_answers: bool) -> list[DoctorFinding]:
    """Everything about the machine. `hub_answers`: a hub is on the port already, so it may well be taken."""
    return [
        python(),
        java(),
        memory(_meminfo()),
        disk(settings.data, settings.log.disk_reserve),
        port(settings, hub_answers),
        clock(time.time(), settings.data),
        open_files(resource.getrlimit(resource.RLIMIT_NOFILE)[0]),
        settings_fit(settings),
    ]


def python() -> DoctorFinding:
    return at_least(
        "python",
        platform.python_version(),
        enough=sys.version_info >= (3, 11),
        sufficient=False,
        remedy="use Python 3.11 or newer",
    )


def java() -> DoctorFinding:
    try:
        return DoctorFinding("java", DoctorVerdict.OK, str(find_java()))
    except JavaMissing as missing:
        sentence, _, remedy = str(missing).partition(": ")
        return DoctorFinding("java", DoctorVerdict.WRONG, sentence, remedy)


def memory(available: int | None) -> DoctorFinding:
    if available is None:
        return DoctorFinding(
            "memory", DoctorVerdict.DOUBTFUL, "unknown", "make sure that 3 GiB are free: Spark alone takes 1.5"
        )
    return at_least(
        "memory",
        f"{available / 2**30:.1f} GiB available",
        enough=available >= MEMORY_ENOUGH,
        sufficient=available >= MEMORY_NEEDED,
        remedy="free some, or lower pipeline.driver_memory: the hub wants about 2 GiB",
    )


def _meminfo() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        return None
    return None


def disk(data: Path, reserve: int) -> DoctorFinding:
    there = next(path for path in (data.absolute(), *data.absolute().parents) if path.exists())
    free = shutil.disk_usage(there).free
    return at_least(
        "disk",
        f"{free / 2**30:.1f} GiB free at {there}",
        enough=free >= max(DISK_ENOUGH, 2 * reserve),
        sufficient=free > reserve,
        remedy="free some room: publishing is refused when less than log.disk_reserve is left",
    )


def port(settings: Settings, hub_answers: bool) -> DoctorFinding:
    where = f"{settings.server.host}:{settings.server.port}"
    if hub_answers:
        return DoctorFinding("port", DoctorVerdict.OK, f"a hub answers on {where}")
    try:
        check_port(settings)
    except Misconfigured as error:
        return DoctorFinding(
            "port", DoctorVerdict.WRONG, str(error), "stop what listens there, or choose another port with --port"
        )
    return DoctorFinding("port", DoctorVerdict.OK, f"{where} is free")


def clock(now: float, data: Path) -> DoctorFinding:
    """Retention and retries go by the clock: it must be set, and must not have gone back behind what was written."""
    newest = max((path.stat().st_mtime for path in data.glob("*.db*")), default=0.0)
    shown = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now))
    if now < _EARLIEST:
        return DoctorFinding("clock", DoctorVerdict.WRONG, shown, "set the clock: retention would go wrong")
    if newest > now + 60:
        return DoctorFinding(
            "clock", DoctorVerdict.DOUBTFUL, f"{shown}, but data was written in the future", "check that the clock is right"
        )
    return DoctorFinding("clock", DoctorVerdict.OK, shown)


def open_files(limit: int) -> DoctorFinding:
    unlimited = limit == resource.RLIM_INFINITY
    return at_least(
        "open files",
        "unlimited" if unlimited else f"{limit} at the most",
        enough=unlimited or limit >= FILES_ENOUGH,
        sufficient=True,
        remedy="raise it (`ulimit -n 65536`) when many connections are expected",
    )


def settings_fit(settings: Settings) -> DoctorFinding:
    try:
        check_settings(settings)
    except Misconfigured as error:
        return DoctorFinding("settings", DoctorVerdict.WRONG, str(error), "change the settings named there")
    return DoctorFinding("settings", DoctorVerdict.OK, "no clashes")
