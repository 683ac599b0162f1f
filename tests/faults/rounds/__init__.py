"""One module for each kind of fault. Each takes a folder and a fresh report, and fills the report in."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tests.faults.ledger import Report
from tests.faults.rounds import disk, files, kills, power, stops
from tests.faults.world import Say


class Amount(NamedTuple):
    """How much is done: kills and events of the round `kills`, and how often the others repeat their fault."""

    kills: int
    events: int
    times: int


@dataclass(frozen=True, slots=True)
class Round:
    """A kind of fault, in a sentence."""

    about: str
    run: Callable[[Path, Report, Amount, Say], None]


ROUNDS: dict[str, Round] = {
    "kills": Round(
        "kills every part, changes policies, kinds and workers meanwhile, with endpoints that fail, hang and are slow",
        lambda folder, report, amount, say: kills.run(folder, report, kills=amount.kills, events=amount.events, say=say),
    ),
    "stops": Round(
        "lets every process stand still: who hangs is named by /health/ready, and the others go on",
        lambda folder, report, amount, say: stops.run(folder, report, say),
    ),
    "files": Round(
        "moves, removes, replaces and unmounts the hub's files: it refuses, and acknowledges nothing into nowhere",
        lambda folder, report, amount, say: files.run(folder, report, say),
    ),
    "disk": Round(
        "fills the disk (needs root, for a small ext4 on a loop device)",
        lambda folder, report, amount, say: disk.run(folder, report, amount.times, say),
    ),
    "power": Round(
        "cuts the power: a hub starts from what was on the disk (needs root, for an ext4 on a loop device)",
        lambda folder, report, amount, say: power.run(folder, report, amount.times, say),
    ),
}


def run(name: str, seed: int, amount: Amount, folder: Path, say: Say) -> Report:
    """One round. What ends it early is a fault of its report."""
    report = Report(name, seed)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        ROUNDS[name].run(folder, report, amount, say)
    except Exception:  # the top of a round: whatever went wrong is what it found
        report.fault("ended early", [traceback.format_exc()])
    return report
