"""Which deliver worker owns which lane. Pure: by the lane's number, so that every process knows without asking."""

from __future__ import annotations

from tidings.log.position import LaneNumber

MOST_WORKERS = 16


def owner_of(lane: LaneNumber, workers: int) -> int:
    """The number of the worker that owns a lane."""
    return lane % workers


def part_name(worker: int) -> str:
    """The name of a worker's process: `deliver`, `deliver-1`, …"""
    return f"deliver-{worker}" if worker else "deliver"


def worker_of(part: str) -> int:
    """The worker that a part's name speaks of."""
    return int(part.partition("-")[2] or 0)
