from __future__ import annotations

from pathlib import Path

import pytest

from tidings import config
from tidings.errors import Misconfigured
from tidings.observe.part_status import PartStatus, read_faces
from tidings.pipeline.routing_figures import RoutingFigures


@pytest.mark.parametrize(("above", "until"), [(100, 100), (100, 200), (10, -1)])
def test_bounds_between_which_routing_would_never_come_to_rest_are_refused(above: int, until: int) -> None:
    with pytest.raises(Misconfigured, match=r"catch_up_until.*less than pipeline\.catch_up_above"):
        config.load(environ={}, flags={"pipeline": {"catch_up_above": above, "catch_up_until": until}})


def test_a_change_of_mode_is_written_at_once_with_its_time(tmp_path: Path) -> None:
    figures = RoutingFigures(PartStatus(tmp_path, "pipeline"))

    def written(name: str) -> float:
        return next(one.value for one in read_faces(tmp_path)["pipeline"].series if one.name == name)

    figures.live()
    assert written("tidings_routing_live") == 1
    first = written("tidings_routing_changed_seconds")
    figures.live()
    assert written("tidings_routing_changed_seconds") == first
    figures.catching_up()
    assert written("tidings_routing_live") == 0
    assert written("tidings_routing_changed_seconds") > first
