"""`make bench-peers`: event-ruler and Tidings on the same files, in turn, in one table. Both are compared event by event.

Both run on one core, where the system can be asked for that, as the aims are meant. With a second core beside it, event-ruler was
seen to take less than half as long at 10,000 rules with ranges.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench.figures import Figure, table
from bench.filters import Measured, in_batches, one_by_one
from bench.workloads import Workload, workload

HERE = Path(__file__).parent
WARM_SECONDS = 6
AIMS = {
    ("equality + range", 1_000): ("≥ 4", "≥ 3"),
    ("equality + range", 10_000): ("≥ 20", "≥ 10"),
    ("equality", 1_000): ("≥ 3", ""),
    ("equality", 10_000): ("≥ 6", ""),
    ("mixed", 1_000): ("≥ 6", ""),
    ("mixed", 10_000): ("≥ 30", ""),
}
"""How many times as fast as event-ruler: in batches, and one by one."""


@dataclass(frozen=True, slots=True)
class Peer:
    """What event-ruler took: µs per event, seconds to build, megabytes of heap."""

    micros: float
    build: float
    megabytes: float


def main() -> int:
    missing = [tool for tool in ("mvn", "java", "javac") if shutil.which(tool) is None]
    if missing:
        wanted = " and ".join(missing)
        print(f"make bench-peers needs {wanted}: install a JDK (17 or newer) and Maven, or use make bench.", file=sys.stderr)
        return 1
    figures: list[Figure] = []
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory(prefix="tidings-peers-") as folder:
        classes = _built(Path(folder))
        for (kind, rules), aims in AIMS.items():
            print(f"measuring {kind}, {rules:,} subscriptions …", file=sys.stderr, flush=True)
            events = 2_000 if (kind, rules) == ("mixed", 10_000) else 10_000
            figures += _compared(kind, workload(kind, rules, events), aims, classes, Path(folder))
    print(table(figures))
    return 0


def _built(folder: Path) -> str:
    """The class path of the runner; Maven fetches event-ruler the first time."""
    target = folder / "peers"
    shutil.copytree(HERE, target, ignore=shutil.ignore_patterns("__pycache__", "*.py"))
    goals = ["package", "dependency:copy-dependencies", "-DoutputDirectory=target/lib"]
    subprocess.run(["mvn", "-q", "-B", "-f", str(target / "pom.xml"), *goals], check=True)
    return f"{target / 'target' / 'classes'}:{target / 'target' / 'lib'}/*"


def _compared(kind: str, chosen: Workload, aims: tuple[str, str], classes: str, folder: Path) -> list[Figure]:
    peer, answers = _event_ruler(chosen, classes, folder)
    ours = Measured(chosen.filters(), chosen.payloads)
    _check(ours, answers)
    batches, single = in_batches(ours), one_by_one(ours)
    name = f"{kind}, {len(chosen.rules):,}"
    return [
        Figure(f"{name}: event-ruler (build {peer.build:.1f} s, heap {peer.megabytes:.0f} MB)", peer.micros, "µs/event"),
        Figure(
            f"{name}: Tidings in batches", batches, "µs/event", "event-ruler, times as fast", peer.micros / batches, aims[0]
        ),
        Figure(f"{name}: Tidings one by one", single, "µs/event", "event-ruler, times as fast", peer.micros / single, aims[1]),
    ]


def _event_ruler(chosen: Workload, classes: str, folder: Path) -> tuple[Peer, list[str]]:
    events, rules = chosen.write(folder, "peer")
    answers = folder / "answers.txt"
    command = ["java", "-cp", classes, "EventRuler", str(events), str(rules), str(answers), str(WARM_SECONDS)]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return Peer(*map(float, told)), answers.read_text("utf-8").split("\n")[: len(chosen.payloads)]


def _check(ours: Measured, answers: list[str]) -> None:
    """Stop when the two do not say the same."""
    found: list[list[int]] = [[] for _ in answers]
    matches = ours.router.route(ours.batch)
    for event, lane in zip(matches.events.tolist(), matches.lanes.tolist(), strict=True):
        found[event].append(lane)
    for number, (mine, theirs) in enumerate(zip(found, answers, strict=True)):
        if ",".join(map(str, mine)) != theirs:
            raise SystemExit(f"event {number}: Tidings says {mine}, event-ruler says {theirs}")


if __name__ == "__main__":
    raise SystemExit(main())
