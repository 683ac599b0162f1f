"""The one law of the registry: what was in force at a position decides.

Random changes at rising marks; the routes that the store derives are compared with the plainest reading of the same changes:
the snapshot after the last change below a position, and for each subscription in it the topics it may have.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import a_subscription, a_topic
from tests.registry.made_up import TOPICS, endings, puts
from tidings.clock import Instant
from tidings.errors import Rejected
from tidings.log.position import Offset, Partition, embedded
from tidings.registry.model import ApprovalState, NamespaceSource, Snapshot, Subscription
from tidings.registry.port import Document, DocumentEnd
from tidings.registry.store import SqlRegistryWriter, open_writer

ZERO = Partition(0)

Decisions = dict[int, tuple[frozenset[int], str]]
"""For each lane: topic numbers and filter."""

changes = st.one_of(
    st.tuples(puts, st.just([])), st.tuples(st.just([]), endings.map(lambda one: [one])), st.tuples(puts, st.lists(endings))
)
steps = st.lists(st.tuples(st.integers(0, 2), changes), max_size=25)
beginnings = st.just([(0, ([a_topic(name) for name in TOPICS], [])), (0, ([a_subscription("s", "a", "b", owner="ann")], []))])


def apply(store: SqlRegistryWriter, change: tuple[list[Document], list[DocumentEnd]], marks: int) -> None:
    """Make the change; one that is refused, for whatever reason, changes nothing."""
    before = store.snapshot()
    try:
        store.change(*change, by="ann", at=Instant(1), marks=embedded(marks))
    except Rejected:
        assert store.snapshot() == before
    assert store.revision() - before.revision in (0, 1)


def naive(snapshot: Snapshot) -> Decisions:
    """Who gets what under this snapshot, said as plainly as possible."""
    return {s.lane: (numbers, repr(s.filter)) for s in snapshot.subscriptions.values() if (numbers := wanted(snapshot, s))}


def wanted(snapshot: Snapshot, s: Subscription) -> frozenset[int]:
    numbers = set()
    for topic in snapshot.topics.values():
        asked = (
            topic.name.namespace == s.source.namespace
            if isinstance(s.source, NamespaceSource)
            else topic.name in s.source.topics
        )
        exposure = snapshot.exposures.get(topic.name)
        approval = snapshot.approvals.get((s.name, topic.name))
        granted = approval is not None and approval.state is ApprovalState.GRANTED
        if asked and (exposure is None or (granted and any(who in ("*", s.owner) for who in exposure.subscribers))):
            numbers.add(topic.number)
    return frozenset(numbers)


def derived(store: SqlRegistryWriter, after: int, position: int) -> Decisions:
    """Who gets the event at this position, by the store's routes; no lane may have two."""
    found: Decisions = {}
    for route in store.routes(embedded(after)):
        if route.since.get(ZERO, Offset(0)) < position and (route.until is None or position <= route.until[ZERO]):
            assert route.lane not in found
            found[route.lane] = (frozenset(route.topics), repr(route.filter))
    return found


@settings(max_examples=100, deadline=None)
@given(beginnings, steps, st.integers(0, 40))
def test_routes_at_every_position_are_a_plain_replay_of_the_changes(beginning: list, changes: list, forgotten: int) -> None:  # type: ignore[type-arg]
    with TemporaryDirectory() as folder, open_writer(Path(folder)) as store:
        marks, history = 0, [(0, Snapshot(revision=0))]
        for gap, change in (*beginning, *changes):
            marks += gap
            apply(store, change, marks)
            history.append((marks, store.snapshot()))
        forgotten = min(forgotten, marks)
        for after in sorted({0, forgotten, marks}):
            if after == forgotten:
                store.forget(embedded(forgotten))
            for position in range(after + 1, marks + 2):
                in_force = [snapshot for at, snapshot in history if at < position][-1]
                assert derived(store, after, position) == naive(in_force)
        names_of_lanes = {(s.lane, s.name) for _, snapshot in history for s in snapshot.subscriptions.values()}
        assert len(names_of_lanes) == len({lane for lane, _ in names_of_lanes})


@settings(max_examples=100, deadline=None)
@given(beginnings, steps, st.integers(1, 3))
def test_a_history_that_is_renewed_has_the_routes_of_one_that_is_made_anew(beginning: list, changes: list, every: int) -> None:  # type: ignore[type-arg]
    with TemporaryDirectory() as folder, open_writer(Path(folder)) as store:
        kept, known, marks = store.route_history(embedded(0)), dict[int, list[bytes]](), 0
        for number, (gap, change) in enumerate((*beginning, *changes)):
            marks += gap
            apply(store, change, marks)
            if number % every == 0:
                for lane in store.renew(kept):
                    known[lane] = sorted(map(msgspec.json.encode, kept.routes_of(lane)))
                assert kept.revision == store.revision()
                fresh = store.route_history(embedded(0))
                made = {lane: sorted(map(msgspec.json.encode, fresh.routes_of(lane))) for lane in fresh.lanes}
                assert {lane: routes for lane, routes in known.items() if routes} == {
                    lane: routes for lane, routes in made.items() if routes
                }
