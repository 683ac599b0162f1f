"""The one law of the registry: what was in force at a position decides.

Random changes at rising marks; the routes that the store derives are compared with the plainest reading of the same changes:
the snapshot after the last change below a position, and for each subscription in it the topics it may have.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import a_filter, a_name, a_subscription, a_topic, an_approval, an_exposure
from tidings.clock import Instant
from tidings.errors import Rejected
from tidings.log.position import Offset, Partition, embedded
from tidings.registry.model import ApprovalState, Exposure, NamespaceSource, Snapshot, Subscription, Topic, TopicsSource
from tidings.registry.port import Document
from tidings.registry.store import SqlRegistryWriter, open_writer

TOPICS = ("a", "b", "x:c")
OWNERS = ("ann", "bob")
FILTERS = (None, a_filter({"x": 1}), a_filter({"x": True}))
SUBSCRIPTIONS = ("s", "t")
ZERO = Partition(0)

Decisions = dict[int, tuple[frozenset[int], str]]
"""For each lane: topic numbers and filter."""

topics = st.builds(a_topic, st.sampled_from(TOPICS), description=st.sampled_from(("", "new")))
exposures = st.builds(
    an_exposure, st.sampled_from(TOPICS), st.sampled_from(("auto", "manual")), subscribers=st.sampled_from((("*",), ("ann",)))
)
sources = st.one_of(
    st.lists(st.sampled_from(TOPICS), min_size=1, unique=True).map(lambda names: TopicsSource(tuple(map(a_name, names)))),
    st.sampled_from(("default", "x")).map(NamespaceSource),
)
subscriptions = st.builds(
    a_subscription,
    st.sampled_from(SUBSCRIPTIONS),
    source=sources,
    filter=st.sampled_from(FILTERS),
    owner=st.sampled_from(OWNERS),
    description=st.sampled_from(("", "new")),
)
approvals = st.builds(
    an_approval, st.sampled_from(SUBSCRIPTIONS), st.sampled_from(TOPICS), st.sampled_from([s.value for s in ApprovalState])
)
puts = st.lists(st.one_of(topics, exposures, subscriptions, approvals), min_size=1, max_size=3)
deletes = st.one_of(
    st.tuples(st.just(Topic), st.sampled_from(TOPICS), st.booleans()),
    st.tuples(st.just(Exposure), st.sampled_from(TOPICS), st.just(False)),
    st.tuples(st.just(Subscription), st.sampled_from(SUBSCRIPTIONS), st.just(False)),
)
steps = st.lists(st.tuples(st.integers(0, 2), st.one_of(puts, deletes)), max_size=25)
beginnings = st.just([(0, [a_topic(name) for name in TOPICS]), (0, [a_subscription("s", "a", "b", owner="ann")])])


def apply(store: SqlRegistryWriter, change: list[Document] | tuple[type[Document], str, bool], marks: int) -> None:
    stamp = {"by": "ann", "at": Instant(1), "marks": embedded(marks)}
    try:
        if isinstance(change, list):
            store.put(change, **stamp)  # type: ignore[arg-type]
        else:
            store.delete(change[0], a_name(change[1]), force=change[2], **stamp)  # type: ignore[arg-type]
    except Rejected:
        pass


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
