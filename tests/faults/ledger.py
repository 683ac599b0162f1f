"""The ledger of a run: what was acknowledged against what was taken.

Acknowledged: the hub answered 202. Lost: acknowledged, and never taken by a subscriber that should have it.
"""

from __future__ import annotations

import json
import struct
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.publisher import BUSY, Publisher
from tests.faults.receipts import Receipts, number_of
from tests.faults.repeats import Disturbance, unexplained
from tests.faults.subscriptions import SUBSCRIPTIONS
from tidings.lanes.sqlite.writer import SqliteLanesReader
from tidings.log.port import Limit
from tidings.log.position import EMBEDDED, START, LaneNumber, Offset, TopicNumber
from tidings.log.sqlite.reader import SqliteLogReader
from tidings.registry.rules import parse_name
from tidings.registry.store import open_reader

SHOWN = 10
FORGOTTEN = "nobody sent it"
"""A lane had something to send while nobody held it: the hub heals that, and it should never be."""


@dataclass
class Report:
    """What came of a run. `faults` must be empty: heading → what was found."""

    name: str
    seed: int
    done: Counter[str] = field(default_factory=Counter)
    acknowledged: int = 0
    unanswered: int = 0
    refused: int = 0
    delivered: int = 0
    duplicates: int = 0
    faults: dict[str, list[str]] = field(default_factory=dict)
    swift: int = 0
    """Kills within a tenth of a second after routing went over to its other mode."""
    disturbances: list[Disturbance] = field(default_factory=list)
    seconds: float = 0.0
    skipped: str = ""

    def fault(self, heading: str, found: Sequence[str]) -> None:
        """Something that must not be, if there is anything of it."""
        if found:
            self.faults.setdefault(heading, []).extend(found)

    def kills(self) -> int:
        return sum(count for what, count in self.done.items() if what.startswith("kill "))

    def lines(self) -> list[str]:
        """The report for people."""
        if self.skipped:
            return [f"{self.name}: skipped, {self.skipped}"]
        done = ", ".join(f"{what} {count}" for what, count in sorted(self.done.items()))
        lines = [
            f"{self.name}: {'FAULTS' if self.faults else 'good'} (seed {self.seed}, {self.seconds:.0f} s)",
            f"  done          {done}; {self.swift} kills within 100 ms after a change of mode",
            f"  acknowledged  {self.acknowledged}, without an answer {self.unanswered}, refused requests {self.refused}",
            f"  delivered     {self.delivered}, and {self.duplicates} once more",
        ]
        for heading, found in self.faults.items():
            lines.append(f"  {heading}: {len(found)}")
            lines += [f"    {one}" for one in found[:SHOWN]]
        return lines


def count(report: Report, publishers: Sequence[Publisher], receipts: Mapping[str, Receipts]) -> None:
    """Add what was acknowledged, delivered, lost, out of order, and repeated without a reason."""
    report.acknowledged += sum(len(publisher.acknowledged) for publisher in publishers)
    report.unanswered += sum(len(publisher.unanswered) for publisher in publishers)
    report.refused += sum(publisher.refusals[BUSY] for publisher in publishers)
    for publisher in publishers:
        odd = {status: count for status, count in publisher.refusals.items() if status != BUSY}
        report.fault("odd answers to publishers", [f"{publisher.name}: {status}, {n} times" for status, n in odd.items()])
    for name, wanted in SUBSCRIPTIONS.items():
        taken = receipts[name].taken
        report.delivered += len(taken)
        report.duplicates += taken.total() - len(taken)
        for publisher in (one for one in publishers if one.topic == wanted.topic):
            missing = [e for e, n in publisher.acknowledged.items() if wanted.takes(n) and e not in taken]
            report.fault("lost", [f"{name}: {event} ({receipts[name].attempts[event]} attempts)" for event in missing])
        wrong = [event for event in taken if not wanted.takes(number_of(event))]
        report.fault("delivered without matching", [f"{name}: {event}" for event in wrong])
        report.fault("out of order", receipts[name].out_of_order())
    repeats = [one for name, receipt in receipts.items() if not SUBSCRIPTIONS[name].rewound for one in receipt.repeats]
    most = {name: wanted.most for name, wanted in SUBSCRIPTIONS.items() if wanted.most is not None}
    report.fault("repeated without a reason", unexplained(repeats, report.disturbances, most))


def hub_errors(log: Path) -> list[str]:
    """Log lines about faults of the hub itself: stacks of the parts in Python, and lanes that were forgotten."""
    found: list[str] = []
    for line in log.read_text(errors="replace").splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        # Spark says with stacks that it was killed.
        stack = entry.get("level") == "error" and "stack" in entry and entry.get("part") != "pipeline"
        if stack or FORGOTTEN in str(entry.get("message")):
            found.append(f"{entry['part']}: {entry['message']} {str(entry.get('stack', ''))[-300:]}".strip())
    return found


def lane_faults(data: Path) -> list[str]:
    """Every lane holds exactly the log's matching entries, each once, in order."""
    log, lanes = SqliteLogReader(data), SqliteLanesReader(data)
    with open_reader(data) as registry:
        snapshot = registry.snapshot()
    faults: list[str] = []
    for name, wanted in SUBSCRIPTIONS.items():
        should = _matching(log, snapshot.topics[parse_name(wanted.topic)].number, wanted.takes)
        holds = _lane(lanes, snapshot.subscriptions[parse_name(name)].lane)
        if holds != should:
            twice = len(holds) - len(set(holds))
            faults.append(
                f"{name}: {len(holds)} entries, {len(should)} expected, {twice} twice, ordered {holds == sorted(holds)}"
            )
    return faults


def _matching(log: SqliteLogReader, topic: TopicNumber, takes: Callable[[int], bool]) -> list[int]:
    found: list[int] = []
    after = {EMBEDDED: START}
    while (page := log.read(topic, after, Limit())).entries:
        after = dict(page.reached)
        found += [entry.position.offset for entry in page.entries if takes(json.loads(entry.data or b"{}")["n"])]
    return found


def _lane(lanes: SqliteLanesReader, lane: LaneNumber) -> list[int]:
    found: list[int] = []
    after = Offset(0)
    while blocks := lanes.blocks(lane, after, EMBEDDED, 100):
        for block in blocks:
            found += struct.unpack(f"<{block.count}q", block.offsets)
        after = blocks[-1].last
    return found
