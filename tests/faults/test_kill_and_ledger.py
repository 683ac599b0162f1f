from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.ledger import run


@pytest.mark.hub
@pytest.mark.timeout(600)
def test_nothing_acknowledged_is_lost_and_lanes_hold_everything_once_whatever_is_killed(tmp_path: Path) -> None:
    report = run(tmp_path, kills=6, events=5_000, seed=7)

    told = "\n".join(report.lines())
    assert sum(report.kills.values()) >= 6, told
    assert report.acknowledged >= 5_000, told
    assert report.lost == [], told
    assert report.wrongly_delivered == [], told
    assert report.lane_faults == [], told
    assert report.out_of_order == [], told
    assert report.repeated == [], told
