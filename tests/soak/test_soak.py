from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.soak.sampling import Sample, grown
from tests.soak.soak import run

MOST_SOCKETS = 1200
"""Of a deliver worker: 1,000 attempts at the most, and what it listens on."""


@pytest.mark.hub
@pytest.mark.slow
@pytest.mark.timeout(400)
def test_good_endpoints_get_everything_beside_bad_ones_and_nothing_is_lost(tmp_path: Path) -> None:
    report = run(tmp_path, seconds=60, every=3)

    assert report.lost == [], report.verdict
    assert report.acknowledged > 100, report.verdict
    assert max(sample.parts["deliver"]["sockets"] for sample in report.samples) < MOST_SOCKETS
    written = report.write(tmp_path / "report")
    assert report.verdict in written.read_text()
    charts = ElementTree.parse(written.with_suffix(".svg")).getroot()
    assert len([one for one in charts if one.tag.endswith("polyline")]) > len(report.samples[-1].parts)


def samples(*memory: float) -> list[Sample]:
    return [Sample(float(n), {"deliver": {"MiB": one, "sockets": 5, "threads": 3}}, {}) for n, one in enumerate(memory)]


def test_a_soak_is_flat_when_its_end_has_no_more_than_its_second_quarter() -> None:
    assert grown(samples(50, 80, 90, 91, 90, 92, 95, 93)) == []
    assert grown(samples(50, 80, 90, 120, 150, 180, 210, 240)) == ["MiB of deliver: 105 → 225"]
    assert grown(samples(50)) == ["there are too few samples to tell"]
