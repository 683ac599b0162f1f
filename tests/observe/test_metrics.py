from __future__ import annotations

import re
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from tidings.ingest.counters import PublishCounters
from tidings.observe import metrics
from tidings.observe.metrics import counter, exposition, gauge
from tidings.observe.part_status import PartStatus, read_faces


def samples(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Read by Prometheus' own parser: what we write is what it understands."""
    families = text_string_to_metric_families(text)
    return {(one.name, tuple(sorted(one.labels.items()))): one.value for family in families for one in family.samples}


def test_counters_of_all_boards_stand_together(tmp_path: Path) -> None:
    for part in ("api", "deliver"):
        board = PartStatus(tmp_path, part)
        board.count("tidings_things_total", 3, part=part)
        board.ready()
        board.flush()
    found = samples(exposition(read_faces(tmp_path).values()))
    assert found["tidings_things_total", (("part", "api"),)] == found["tidings_things_total", (("part", "deliver"),)] == 3
    assert found["tidings_part_ready", (("part", "api"),)] == 1


def test_a_counter_keeps_its_name_and_its_sentence() -> None:
    text = exposition([], [counter("tidings_published_total", 6, topic="orders")])
    assert "# HELP tidings_published_total Events acknowledged, by topic.\n# TYPE tidings_published_total counter\n" in text


def test_every_figure_is_told_in_a_sentence() -> None:
    source = Path(metrics.__file__).parents[1]
    named = {name for file in source.rglob("*.py") for name in re.findall(r'"(tidings_[a-z_]+)"', file.read_text())}
    assert named >= {"tidings_inflight", "tidings_published_total"}
    assert {name for name in named if name.rstrip("_") != "tidings"} <= metrics.HELP.keys()


def test_odd_label_values_are_escaped(tmp_path: Path) -> None:
    odd = 'a "quoted"\nline \\ end'
    assert samples(exposition([], [gauge("tidings_lag_events", 2.5, stage=odd)])) == {
        ("tidings_lag_events", (("stage", odd),)): 2.5
    }


def test_a_tally_is_brought_to_the_board_and_starts_again(tmp_path: Path) -> None:
    board, tally = PartStatus(tmp_path, "api"), PublishCounters()
    for seconds in (0.0005, 0.003, 99.0):
        tally.published("orders", 2, seconds)
    tally.refused("too-large")
    tally.repeated("orders", 1)
    tally.report(board)
    tally.report(board)
    found = samples(exposition([board.face()]))
    assert found["tidings_published_total", (("topic", "orders"),)] == 6
    assert found["tidings_publish_refused_total", (("code", "too-large"),)] == 1
    assert found["tidings_duplicates_total", (("topic", "orders"),)] == 1
    assert found["tidings_publish_seconds_count", ()] == 3
    assert found["tidings_publish_seconds_bucket", (("le", "0.001"),)] == 1
    assert found["tidings_publish_seconds_bucket", (("le", "0.005"),)] == 2
    assert found["tidings_publish_seconds_bucket", (("le", "+Inf"),)] == 3


def test_times_counted_one_by_one_and_in_bulk_fall_into_the_same_buckets(tmp_path: Path) -> None:
    single, bulk, tally = PartStatus(tmp_path, "a"), PartStatus(tmp_path, "b"), PublishCounters()
    for seconds in (0.001, 0.0011, 0.5, 31.0):
        single.observe("tidings_publish_seconds", seconds)
        tally.published("t", 1, seconds)
    tally.report(bulk)
    by_name = {series.name: series for series in bulk.face().series}
    assert by_name["tidings_publish_seconds"].buckets == single.face().series[0].buckets
