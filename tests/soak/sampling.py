"""What a running hub looks like from outside, now and then: memory, sockets and threads of each part, and how far it is behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.processes import pids_of, share_of
from tests.hub import Hub

MEASURES = ("MiB", "sockets", "threads")
SLACK = {"MiB": 25.0, "sockets": 50.0, "threads": 10.0}
"""What a part may have more at the end, beside a tenth of what it had."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One look. `parts[part][measure]`; `behind` is what waits for routing, and for the well endpoints."""

    at: float
    parts: dict[str, dict[str, float]]
    behind: dict[str, float]


def look(hub: Hub, at: float, well: Sequence[str]) -> Sample:
    """How the hub is doing now."""
    status = hub.call("GET", "/api/status").json
    lags = {one["name"]: one["lag"] for one in status["subscriptions"]}
    behind = {"routing": status["lag"]["routing"]["events"], **{name: lags.get(name, 0) for name in well}}
    return Sample(at, {part: _measured(pids) for part, pids in pids_of(hub).items()}, behind)


def _measured(pids: Sequence[int]) -> dict[str, float]:
    return {
        "MiB": sum(map(share_of, pids)) / (1 << 20),
        "sockets": float(sum(map(_sockets, pids))),
        "threads": float(sum(map(_threads, pids))),
    }


def _sockets(pid: int) -> int:
    found = 0
    try:
        for link in (Path("/proc") / str(pid) / "fd").iterdir():
            found += _leads_to_socket(link)
    except OSError:
        pass
    return found


def _leads_to_socket(link: Path) -> bool:
    try:
        return str(link.readlink()).startswith("socket:")
    except OSError:
        return False


def _threads(pid: int) -> int:
    try:
        return sum(1 for _ in (Path("/proc") / str(pid) / "task").iterdir())
    except OSError:
        return 0


def grown(samples: Sequence[Sample]) -> list[str]:
    """What the last quarter has clearly more of than the second one had (the first is warming up). Empty: it is flat."""
    quarter = len(samples) // 4
    if not quarter:
        return ["there are too few samples to tell"]
    earlier, later = samples[quarter : 2 * quarter], samples[-quarter:]
    found = []
    for part in samples[-1].parts:
        for measure in MEASURES:
            before, after = (median(_all(some, part, measure)) for some in (earlier, later))
            if after > before * 1.1 + SLACK[measure]:
                found.append(f"{measure} of {part}: {before:.0f} → {after:.0f}")
    return found


def _all(samples: Sequence[Sample], part: str, measure: str) -> list[float]:
    return [sample.parts[part][measure] for sample in samples if part in sample.parts] or [0.0]
