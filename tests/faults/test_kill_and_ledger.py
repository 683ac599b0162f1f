from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults import rounds


@pytest.mark.hub
@pytest.mark.timeout(900)
def test_nothing_acknowledged_is_lost_and_every_lane_comes_to_rest_whatever_is_killed_and_changed(tmp_path: Path) -> None:
    report = rounds.run("kills", 7, rounds.Amount(kills=6, events=5_000, times=1), tmp_path, lambda line: None)

    told = "\n".join(report.lines())
    assert report.kills() == 6, told
    assert report.acknowledged >= 5_000, told
    assert report.faults == {}, told
