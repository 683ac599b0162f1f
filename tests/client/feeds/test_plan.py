"""Where reading begins: FCL-10 to FCL-15."""

from __future__ import annotations

import pytest

from tidings.client.feeds import FIRST, LAST, Discovery, Partition, StoredCursor
from tidings.client.feeds.start_plan import StartPlan, plan

CLOSED = (Partition("0", closed=True), Partition("1", after="0"), Partition("2", after="0"))


def planned(
    *partitions: Partition, kept: dict[str, StoredCursor] | None = None, start: str = FIRST, ordered: bool = True
) -> StartPlan:
    return plan(Discovery(2, "t", partitions), kept or {}, start, ordered=ordered)


def cursors(made: StartPlan) -> dict[str, str]:
    return {place.partition.id: place.cursor for place in made.places}


def test_a_new_reader_begins_at_start_and_remembers_it() -> None:
    made = planned(Partition("0"), Partition("1"), start="c5")
    assert cursors(made) == {"0": "c5", "1": "c5"}
    assert made.saves == {"0": StoredCursor("c5"), "1": StoredCursor("c5")}


def test_a_saved_cursor_goes_before_everything() -> None:
    made = planned(Partition("0", cursors_of=("9",)), kept={"0": StoredCursor("c7"), "9": StoredCursor("c3")}, start=LAST)
    assert (cursors(made), made.saves) == ({"0": "c7"}, {})


def test_children_begin_at_the_beginning_when_their_parent_is_finished() -> None:
    made = planned(*CLOSED, start="c5")
    assert cursors(made) == {"0": "c5", "1": FIRST, "2": FIRST}
    assert [place.after for place in made.places] == [None, "0", "0"]
    # A child has no cursor of its own before it began: its parent's is the one to inherit when all is redistributed.
    assert made.saves == {"0": StoredCursor("c5")}
    done = planned(*CLOSED, kept={"0": StoredCursor("c9", finished=True)})
    assert [(place.partition.id, place.cursor, place.after) for place in done.places] == [
        ("1", FIRST, None),
        ("2", FIRST, None),
    ]


def test_without_order_nobody_waits() -> None:
    assert [place.after for place in planned(*CLOSED, ordered=False).places] == [None, None, None]


def test_who_starts_at_the_end_has_finished_what_is_closed() -> None:
    made = planned(*CLOSED, start=LAST)
    assert cursors(made) == {"1": LAST, "2": LAST}
    assert made.saves["0"] == StoredCursor(LAST, finished=True)


def test_a_partition_that_appeared_later_is_read_whole() -> None:
    made = planned(Partition("0"), Partition("1"), kept={"0": StoredCursor("c5")}, start=LAST)
    assert cursors(made) == {"0": "c5", "1": FIRST}
    assert cursors(planned(*CLOSED, kept={"0": StoredCursor("c5")}, start=LAST)) == {"0": "c5", "1": FIRST, "2": FIRST}


def test_heirs_take_the_cursor_of_the_nearest_ancestor_and_the_ancestor_is_done_with() -> None:
    heirs = (Partition("3", cursors_of=("1", "0")), Partition("4", cursors_of=("2", "0")))
    made = planned(*heirs, kept={"0": StoredCursor("c1", finished=True), "1": StoredCursor("c8"), "2": StoredCursor("c9")})
    assert cursors(made) == {"3": "c8", "4": "c9"}
    assert made.saves == {
        "3": StoredCursor("c8"),
        "4": StoredCursor("c9"),
        "1": StoredCursor("c8", True),
        "2": StoredCursor("c9", True),
    }


def test_an_unread_closed_ancestor_is_where_reading_goes_on() -> None:
    heirs = (Partition("3", cursors_of=("1", "0")),)
    assert cursors(planned(*heirs, kept={"0": StoredCursor("c4"), "1": StoredCursor("c8")})) == {"3": "c4"}
    assert cursors(planned(*heirs, kept={"0": StoredCursor("c4")})) == {"3": "c4"}


def test_two_redistributions_do_not_go_back_to_the_grandparent() -> None:
    kept = {"0": StoredCursor("c5")}
    kept |= planned(Partition("1", cursors_of=("0",)), kept=kept).saves
    kept["1"] = StoredCursor("c8")
    assert cursors(planned(Partition("2", cursors_of=("1", "0")), kept=kept)) == {"2": "c8"}


def test_a_parent_that_is_not_closed_or_not_listed_is_not_waited_for() -> None:
    made = planned(Partition("0"), Partition("1", after="0"), Partition("2", after="8"), Partition("3", closed=True, after="3"))
    assert {place.after for place in made.places} == {None}


def test_finished_partitions_are_not_read_again_while_they_are_closed() -> None:
    assert planned(Partition("0", closed=True), kept={"0": StoredCursor("c5", finished=True)}).places == ()


@pytest.mark.parametrize("ordered", [True, False])
def test_a_finished_partition_that_is_listed_as_open_is_read_on(ordered: bool) -> None:
    """The hub went back to a backup from before the repartition, or the topic was deleted and made again."""
    made = planned(
        Partition("0"),
        kept={"0": StoredCursor("c5", finished=True), "1": StoredCursor("c7"), "2": StoredCursor("c6")},
        ordered=ordered,
    )
    assert cursors(made) == {"0": "c5"}
    assert made.saves == {"0": StoredCursor("c5")}


def test_children_of_a_partition_that_is_open_again_are_not_held_up_by_it() -> None:
    made = planned(Partition("0"), Partition("1", after="0"), kept={"0": StoredCursor("c5", finished=True)})
    assert {place.partition.id: place.after for place in made.places} == {"0": None, "1": None}


def test_a_reader_that_passed_over_a_closed_partition_reads_it_whole_once_it_is_open_again() -> None:
    """It began at the end, so no position is known in that partition; `_last` would pass over what came since."""
    kept = dict(planned(*CLOSED, start=LAST).saves)
    assert cursors(planned(Partition("0"), kept=kept, start=LAST)) == {"0": FIRST}


def test_a_finished_ancestor_that_is_gone_stays_finished() -> None:
    kept = {"0": StoredCursor("c4", finished=True), "1": StoredCursor("c8")}
    assert cursors(planned(Partition("3", cursors_of=("1", "0")), kept=kept)) == {"3": "c8"}
