"""One soak: declare, publish, look, let it come to rest, count. Nothing acknowledged may be missing at a well endpoint."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.faults.publisher import Publisher
from tests.hub import Hub
from tests.soak.endpoints import ILL, WELL, Endpoints
from tests.soak.picture import picture
from tests.soak.sampling import MEASURES, Sample, grown, look

TOPIC = "soak"
SETTINGS = '[push]\nretry_first = "200ms"\nretry_max = "2s"\nattempt_timeout = "3s"\nconnect_timeout = "2s"\n'

FILTERS: dict[int, str] = {3: "third = 0", 6: 'third = 0 and region = "EU"'}
SHARES: dict[str, int] = {"slow": 3, "keyed": 3, "strict": 6, **dict.fromkeys(ILL, 3)}
"""Of every so many events one is for this kind; all for the others. Strict order waits for the disk before each."""

PAUSE = 1.0
"""Seconds between two requests of a publisher, each with twenty events or so."""

POLICIES: dict[str, dict[str, Any]] = {
    "strict": {"ordering": "strict", "tries": 1000},
    "keyed": {"ordering": "key", "tries": 1000},
    "batched": {"batchSize": 50, "batchTime": 0.5, "tries": 1000},
    "flapping": {"tries": 1000},
    "dead": {"preset": "horizon"},
    "refusing": {"tries": 2},
}


@dataclass
class Report:
    """What came of it."""

    seconds: float = 0.0
    acknowledged: int = 0
    lost: list[str] = field(default_factory=list)
    grown: list[str] = field(default_factory=list)
    states: list[dict[str, Any]] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        flat = "flat" if not self.grown else f"NOT flat ({'; '.join(self.grown)})"
        return f"{flat}; {self.acknowledged} acknowledged, {len(self.lost)} lost; {self.seconds:.0f} s"

    def write(self, folder: Path) -> Path:
        """The report as Markdown with its picture beside it."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "soak.svg").write_text(picture(_charts(self.samples)))
        columns = ("name", "state", "delivered", "failedAttempts", "deadLetters", "lag")
        rows = [f"| {' | '.join(str(one[column]) for column in columns)} |" for one in self.states]
        titles = "| endpoint | state | delivered | failed attempts | dead letters | not final |"
        lines = ["# Soak", "", f"**{self.verdict}**", "", "![memory, sockets, threads, lag](soak.svg)", ""]
        lines += [titles, "|---|---|---:|---:|---:|---:|", *rows]
        lines += ["", *(f"* lost: {one}" for one in self.lost[:20])]
        (folder / "soak.md").write_text("\n".join(lines) + "\n")
        return folder / "soak.md"


def run(folder: Path, *, seconds: float, every: float, say: Callable[[str], None] = lambda line: None) -> Report:
    """Publish for so long, looking every so many seconds."""
    report, endpoints = Report(), Endpoints()
    hub = Hub(folder / "data", SETTINGS).start().wait_live()
    publishers = [Publisher(f"p{n}", TOPIC, hub, pause=PAUSE) for n in range(2)]
    try:
        _declare(hub, endpoints)
        hub.wait_ready()
        began = time.monotonic()
        for publisher in publishers:
            publisher.start()
        while (passed := time.monotonic() - began) < seconds:
            report.samples.append(look(hub, passed, WELL))
            say(_line(report.samples[-1]))
            time.sleep(max(0.0, every - (time.monotonic() - began - passed)))
        for publisher in publishers:
            publisher.stop.set()
            publisher.join(60)
        report.acknowledged = sum(len(publisher.acknowledged) for publisher in publishers)
        _rest(hub, endpoints, publishers)
        report.seconds = time.monotonic() - began
        report.states = hub.call("GET", "/api/status").json["subscriptions"]
        report.lost = [*_missing(endpoints, publishers), *_unaccounted(report.states, publishers)]
        report.grown = grown(report.samples)
    finally:
        hub.stop()
        endpoints.close()
    return report


def _declare(hub: Hub, endpoints: Endpoints) -> None:
    assert hub.call("PUT", f"/api/topics/{TOPIC}", {}).status == 201
    for kind in (*WELL, *ILL):
        body: dict[str, Any] = {"topic": TOPIC, "delivery": {"url": endpoints.url_of(kind), **POLICIES.get(kind, {})}}
        if kind in SHARES:
            body["where"] = FILTERS[SHARES[kind]]
        answer = hub.call("PUT", f"/api/subscriptions/{kind}", body)
        assert answer.status == 201, answer.body


def _rest(hub: Hub, endpoints: Endpoints, publishers: Sequence[Publisher], patience: float = 120.0) -> None:
    """Wait until the well endpoints have everything, or it is clear that they will not."""
    end = time.monotonic() + patience
    while time.monotonic() < end and _missing(endpoints, publishers):
        time.sleep(0.5)
    hub.until(lambda: hub.call("GET", "/api/status").json["lag"]["routing"]["events"] == 0, 60, "everything is routed")


def _wanted(kind: str, publishers: Sequence[Publisher]) -> list[str]:
    share = SHARES.get(kind, 1)
    return [event for publisher in publishers for event, n in publisher.acknowledged.items() if n % share == 0]


def _missing(endpoints: Endpoints, publishers: Sequence[Publisher]) -> list[str]:
    """Acknowledged events that a well endpoint has not got."""
    found = []
    for kind in WELL:
        arrived = endpoints.of(kind).taken
        found += [f"{kind}: {event}" for event in _wanted(kind, publishers) if event not in arrived]
    return found


def _unaccounted(states: Sequence[dict[str, Any]], publishers: Sequence[Publisher]) -> list[str]:
    """What is for an ill endpoint must be a dead letter or wait: less than was acknowledged means that something is gone."""
    found = []
    for one in states:
        known = one["delivered"] + one["deadLetters"] + one["lag"]
        if one["name"] in ILL and known < len(_wanted(one["name"], publishers)):
            found.append(f"{one['name']}: only {known} of {len(_wanted(one['name'], publishers))} are accounted for")
    return found


def _line(sample: Sample) -> str:
    parts = "  ".join(
        f"{part} {values['MiB']:.0f} MiB {values['sockets']:.0f} sockets" for part, values in sample.parts.items()
    )
    return f"{sample.at:6.0f} s  {parts}  behind {sum(sample.behind.values()):.0f}"


def _charts(samples: Sequence[Sample]) -> dict[str, dict[str, list[tuple[float, float]]]]:
    parts = list(samples[-1].parts) if samples else []
    titles = {"MiB": "memory in MiB", "sockets": "open sockets", "threads": "threads"}
    charts = {
        titles[measure]: {part: [(s.at, s.parts[part][measure]) for s in samples if part in s.parts] for part in parts}
        for measure in MEASURES
    }
    names = list(samples[-1].behind) if samples else []
    charts["entries behind, at routing and at well endpoints"] = {
        n: [(s.at, s.behind.get(n, 0.0)) for s in samples] for n in names
    }
    return charts
