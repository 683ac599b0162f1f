"""Routes out of versions, as tables. `V(document, since, until)` is a version by revisions; revision n has the marks MARKS[n]."""

from typing import Any

from tests.builders import a_filter, a_subscription, a_topic, an_approval, an_exposure
from tidings.log.position import Marks, Offset, Partition, embedded
from tidings.registry.model import NamespaceSource, Push, Route
from tidings.registry.rules import Version as V
from tidings.registry.rules import routes

MARKS: dict[int, Marks] = {0: {}, **{n: embedded(10 * n) for n in range(1, 10)}}
T1, T2 = a_topic("a", number=1), a_topic("b", number=2)


def sub(*topics: str, **fields: Any) -> Any:
    return a_subscription("s", *(topics or ("a",)), lane=7, **fields)


def spans(found: list[Route]) -> list[tuple[set[int], int, int | None]]:
    """Topics, since, until of routes of the embedded log, in order."""
    return sorted(
        ((set(r.topics), r.since.get(Partition(0), 0), None if r.until is None else r.until[Partition(0)]) for r in found),
        key=lambda span: span[1],
    )


def test_a_subscription_begins_above_its_marks() -> None:
    assert spans(routes([V(T1, 1), V(sub(), 2)], MARKS)) == [({1}, 20, None)]


def test_a_route_begins_with_the_later_of_topic_and_subscription() -> None:
    assert spans(routes([V(T1, 3), V(sub(source=NamespaceSource("default")), 2)], MARKS)) == [({1}, 30, None)]


def test_a_deleted_subscription_ends() -> None:
    assert spans(routes([V(T1, 1), V(sub(), 2, 4)], MARKS)) == [({1}, 20, 40)]


def test_a_new_filter_takes_over_without_gap_or_overlap() -> None:
    versions = [V(T1, 1), V(sub(filter=a_filter("x")), 2, 4), V(sub(filter=a_filter("y")), 4)]
    found = routes(versions, MARKS)
    assert spans(found) == [({1}, 20, 40), ({1}, 40, None)]
    assert [route.filter for route in found] == [a_filter("x"), a_filter("y")]


def test_a_filter_on_1_takes_over_from_one_on_true() -> None:
    versions = [V(T1, 1), V(sub(filter=a_filter({"x": True})), 2, 4), V(sub(filter=a_filter({"x": 1})), 4)]
    assert spans(routes(versions, MARKS)) == [({1}, 20, 40), ({1}, 40, None)]


def test_a_change_of_delivery_or_topic_details_is_no_new_route() -> None:
    versions = [
        V(T1, 1, 5),
        V(a_topic("a", number=1, retention=5), 5),
        V(sub(), 2, 4),
        V(sub(delivery=Push(url="http://x.example/")), 4, 6),
        V(sub(description="z"), 6),
    ]
    assert spans(routes(versions, MARKS)) == [({1}, 20, None)]


def test_topics_that_join_a_namespace_later_extend_it_from_there() -> None:
    versions = [V(T1, 1), V(sub(source=NamespaceSource("default")), 2), V(T2, 4, 6), V(a_topic("x:c", number=3), 5)]
    assert spans(routes(versions, MARKS)) == [({1}, 20, 40), ({1, 2}, 40, 60), ({1}, 60, None)]


def test_topics_join_the_version_in_force_then_and_no_older_one() -> None:
    everything = NamespaceSource("default")
    versions = [V(T1, 1), V(sub(source=everything), 2, 4), V(sub(source=everything, filter=a_filter("x")), 4)]
    found = routes([*versions, V(T2, 5), V(a_topic("c", number=3), 6)], MARKS)
    assert spans(found) == [({1}, 20, 40), ({1}, 40, 50), ({1, 2}, 50, 60), ({1, 2, 3}, 60, None)]


def test_a_list_of_topics_is_one_route() -> None:
    assert spans(routes([V(T1, 1), V(T2, 1), V(sub("a", "b"), 2)], MARKS)) == [({1, 2}, 20, None)]


def test_a_pending_approval_gives_no_route() -> None:
    exposed = V(an_exposure("a", "manual"), 1)
    pending, granted = an_approval("s", "a", "pending"), an_approval("s", "a", "granted")
    assert routes([V(T1, 1), exposed, V(sub(), 2)], MARKS) == []
    assert routes([V(T1, 1), exposed, V(sub(), 2), V(pending, 2)], MARKS) == []
    found = routes(
        [V(T1, 1), exposed, V(sub(), 2), V(pending, 2, 4), V(granted, 4, 5), V(an_approval("s", "a", "rejected"), 5)], MARKS
    )
    assert spans(found) == [({1}, 40, 50)]


def test_each_topic_of_a_list_is_approved_by_itself() -> None:
    versions = [V(T1, 1), V(T2, 1), V(an_exposure("a", "manual"), 1), V(sub("a", "b"), 2), V(an_approval("s", "a"), 5)]
    assert spans(routes(versions, MARKS)) == [({2}, 20, 50), ({1, 2}, 50, None)]


def test_an_exposure_made_later_needs_approval_from_there() -> None:
    versions = [V(T1, 1), V(sub(), 2), V(an_exposure("a", "manual"), 4, 6)]
    assert spans(routes(versions, MARKS)) == [({1}, 20, 40), ({1}, 60, None)]


def test_whoever_is_taken_off_the_list_gets_nothing_more() -> None:
    versions = [
        *(V(T1, 1), V(sub(owner="ann"), 2), V(an_approval("s", "a"), 2)),
        *(V(an_exposure("a"), 1, 4), V(an_exposure("a", subscribers=("bob",)), 4)),
    ]
    assert spans(routes(versions, MARKS)) == [({1}, 20, 40)]


def test_versions_that_held_for_no_position_vanish() -> None:
    still = {0: {}, 1: embedded(10), 2: embedded(20), 3: embedded(20), 4: embedded(20), 5: embedded(50)}
    versions = [V(T1, 1), V(sub(), 1, 2), V(sub(filter=a_filter("x")), 2, 3), V(sub(filter=a_filter("y")), 3, 4), V(sub(), 4)]
    assert spans(routes(versions, still)) == [({1}, 10, None)]


def test_a_subscription_deleted_before_any_event_has_no_route() -> None:
    assert routes([V(T1, 1), V(sub(), 1, 2)], {0: {}, 1: embedded(5), 2: embedded(5)}) == []


def test_a_version_that_held_in_one_partition_only_is_kept() -> None:
    def at(zero: int, one: int) -> Marks:
        return {Partition(0): Offset(zero), Partition(1): Offset(one)}

    marks = {0: {}, 1: at(5, 5), 2: at(5, 8), 3: at(9, 9)}
    found = routes([V(T1, 1), V(sub(filter=a_filter("x")), 1, 2), V(sub(), 2, 3)], marks)
    assert [(route.since, route.until) for route in found] == [(at(5, 5), at(5, 8)), (at(5, 8), at(9, 9))]


def test_above_a_floor_only_what_holds_there_is_given() -> None:
    versions = [V(T1, 1), V(sub(source=NamespaceSource("default")), 2), V(T2, 3)]
    assert spans(routes(versions, MARKS, floor=5)) == [({1, 2}, 50, None)]


def test_lanes_are_apart() -> None:
    other = a_subscription("other", "a", lane=8)
    found = routes([V(T1, 1), V(sub(), 2), V(other, 3)], MARKS)
    assert sorted((r.lane, r.since[Partition(0)]) for r in found) == [(7, 20), (8, 30)]
