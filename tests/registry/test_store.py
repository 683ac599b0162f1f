"""The store: versions, revisions, the audit log, what is durable and what is forgotten."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builders import a_filter, a_name, a_subscription, a_topic, an_approval, an_exposure
from tidings.clock import Instant
from tidings.errors import Conflict, DataFolderUnusable, InvalidDocument, NotFound
from tidings.log.position import Marks, Offset, Partition, embedded
from tidings.registry.current import CurrentRegistry
from tidings.registry.model import Exposure, NamespaceSource, Push, Subscription, Topic
from tidings.registry.port import Document, DocumentEnd, RegistryReader, RegistryWriter
from tidings.registry.store import SqlRegistryWriter, open_reader, open_writer


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlRegistryWriter]:
    with open_writer(tmp_path) as writer:
        yield writer


def put(store: SqlRegistryWriter, *documents: Document, marks: int = 0, by: str = "ann") -> list[Document]:
    return list(store.put(documents, by=by, at=Instant(1_000 + marks), marks=embedded(marks)))


def drop(store: SqlRegistryWriter, kind: type[Document], name: str, *, marks: int = 0, force: bool = False) -> Document:
    return store.delete(kind, a_name(name), by="ann", at=Instant(1_000 + marks), marks=embedded(marks), force=force)


def test_the_store_is_the_port(store: SqlRegistryWriter, tmp_path: Path) -> None:
    writer: RegistryWriter = store
    reader: RegistryReader = open_reader(tmp_path)
    assert writer.revision() == reader.revision() == 0


def test_what_was_put_is_in_force_for_every_reader(store: SqlRegistryWriter, tmp_path: Path) -> None:
    given = a_subscription(
        filter=a_filter({"b": 1, "a": [True, None, 1.5, "ü"]}),
        delivery=Push(url="http://x.example/", headers={"X-B": "1", "X-A": "2"}),
    )
    topic, subscription = put(store, a_topic(schema={"type": "object"}), given)
    with open_reader(tmp_path) as reader:
        snapshot = reader.snapshot()
    assert snapshot == store.snapshot()
    assert (snapshot.revision, dict(snapshot.topics)) == (1, {topic.name: topic})
    assert dict(snapshot.subscriptions) == {a_name("billing"): subscription}
    assert isinstance(subscription, Subscription)
    assert (subscription.filter, subscription.delivery) == (given.filter, given.delivery)


def test_everything_outlives_the_process(tmp_path: Path) -> None:
    with open_writer(tmp_path) as store:
        put(store, a_topic(), an_exposure(), a_subscription())
        before = store.snapshot()
    with open_writer(tmp_path) as store:
        assert store.snapshot() == before
        assert put(store, a_topic("b"))[0].number == 2  # type: ignore[union-attr]


def test_numbers_are_not_reused_after_deletion_forgetting_and_restart(tmp_path: Path) -> None:
    with open_writer(tmp_path) as store:
        put(store, a_topic(), a_subscription())
        drop(store, Topic, "orders", marks=5, force=True)
        assert store.forget(embedded(5)) == 2
    with open_writer(tmp_path) as store:
        topic, subscription = put(store, a_topic(), a_subscription(), marks=9)
    assert (topic.number, subscription.lane) == (2, 2)  # type: ignore[union-attr]


def test_equal_documents_make_no_revision(store: SqlRegistryWriter) -> None:
    first = put(store, a_topic(), a_subscription())
    assert put(store, a_topic(), a_subscription(), marks=7) == first
    assert store.revision() == 1
    put(store, a_topic(), a_subscription(description="new"), marks=7)
    assert [(c.action, c.kind) for c in store.changes(1, 100)] == [("update", "subscription")]


def test_a_change_is_all_or_nothing(store: SqlRegistryWriter) -> None:
    with pytest.raises(InvalidDocument):
        put(store, a_topic(), a_subscription("s", "nope"))
    with pytest.raises(InvalidDocument):
        put(store, a_topic(), a_topic("b", retention=0))
    assert (store.revision(), store.snapshot().topics) == (0, {})


def test_a_deletion_gives_what_was_there(store: SqlRegistryWriter) -> None:
    topic, _, subscription = put(store, a_topic(), an_exposure(), a_subscription())
    with pytest.raises(Conflict):
        drop(store, Topic, "orders")
    assert drop(store, Subscription, "billing") == subscription
    assert drop(store, Topic, "orders") == topic
    snapshot = store.snapshot()
    assert not (snapshot.topics or snapshot.exposures or snapshot.subscriptions or snapshot.approvals)
    with pytest.raises(NotFound):
        drop(store, Exposure, "orders")


def test_every_change_is_in_the_audit_log(store: SqlRegistryWriter) -> None:
    put(store, a_topic(), marks=3, by="ann")
    put(store, an_exposure(approval="manual"), a_subscription(), marks=5, by="bob")
    put(store, an_approval(state="granted"), marks=6, by="ann")
    drop(store, Subscription, "billing", marks=8)
    lines = store.changes(0, 100)
    assert [(c.revision, c.by, c.action, c.kind, c.name) for c in lines] == [
        (1, "ann", "create", "topic", "orders"),
        (2, "bob", "create", "exposure", "orders"),
        (2, "bob", "create", "subscription", "billing"),
        (2, "bob", "create", "approval", "billing on orders"),
        (3, "ann", "update", "approval", "billing on orders"),
        (4, "ann", "delete", "subscription", "billing"),
        (4, "ann", "delete", "approval", "billing on orders"),
    ]
    assert [(c.at, c.marks) for c in lines[-1:]] == [(1008, embedded(8))]
    assert lines[4].document["state"] == "granted"


def test_puts_and_endings_are_one_revision_with_a_line_each(store: SqlRegistryWriter) -> None:
    topic, _, subscription = put(store, a_topic(), an_exposure(), a_subscription(), marks=3)
    ends = [DocumentEnd(Topic, a_name("orders")), DocumentEnd(Subscription, a_name("billing"))]
    done = store.change([a_topic("b"), a_subscription("s", "b")], ends, by="bob", at=Instant(9), marks=embedded(7))
    assert [str(one.name) for one in done.stored if isinstance(one, Topic | Subscription)] == ["b", "s"]
    assert done.ended == [topic, subscription]
    assert [(c.revision, c.by, c.action, c.kind, c.name) for c in store.changes(1, 100)] == [
        (2, "bob", "create", "topic", "b"),
        (2, "bob", "create", "subscription", "s"),
        (2, "bob", "delete", "topic", "orders"),
        (2, "bob", "delete", "subscription", "billing"),
        (2, "bob", "delete", "exposure", "orders"),
        (2, "bob", "delete", "approval", "billing on orders"),
    ]
    assert [(r.lane, set(r.topics), r.since, r.until) for r in store.routes({})] == [
        (1, {1}, embedded(3), embedded(7)),
        (2, {2}, embedded(7), None),
    ]


def test_a_refused_ending_leaves_no_put_behind(store: SqlRegistryWriter) -> None:
    put(store, a_topic(), a_subscription())
    before = store.snapshot()
    with pytest.raises(Conflict):
        store.change([a_topic("b")], [DocumentEnd(Topic, a_name("orders"))], by="ann", at=Instant(9), marks=embedded(7))
    assert store.snapshot() == before
    assert store.revision() == 1


def test_the_audit_log_is_read_in_whole_revisions(store: SqlRegistryWriter) -> None:
    put(store, a_topic("a"))
    put(store, a_topic("b"), a_topic("c"), a_topic("d"))
    put(store, a_topic("e"))
    assert [c.name for c in store.changes(0, 2)] == ["a"]
    assert [c.name for c in store.changes(1, 2)] == ["b", "c", "d"]
    assert [c.name for c in store.changes(2, 2)] == ["e"]
    assert [c.name for c in store.changes(0, 4)] == ["a", "b", "c", "d"]
    assert store.changes(3, 2) == []


def test_the_audit_log_outlives_forgetting(store: SqlRegistryWriter) -> None:
    put(store, a_topic())
    put(store, a_topic(description="new"), marks=5)
    assert store.forget(embedded(9)) == 1
    assert [c.action for c in store.changes(0, 10)] == ["create", "update"]


def test_routes_above_a_position_are_those_in_force_there(store: SqlRegistryWriter) -> None:
    put(store, a_topic(), a_subscription(filter=a_filter("x")), marks=10)
    put(store, a_subscription(filter=a_filter("y")), marks=20)
    drop(store, Subscription, "billing", marks=30)

    def held(after: int) -> list[tuple[str, Marks, Marks | None]]:
        return [(r.filter.text, r.since, r.until) for r in store.routes(embedded(after)) if r.filter]

    x, y = ("x", embedded(10), embedded(20)), ("y", embedded(20), embedded(30))
    assert held(0) == [x, y]
    assert held(19) == [x, y]
    assert held(20) == held(29) == [y]
    assert held(30) == []


def test_a_topic_made_later_joins_a_namespace_subscription(store: SqlRegistryWriter) -> None:
    put(store, a_topic("a"), a_subscription(source=NamespaceSource("default")), marks=10)
    put(store, a_topic("b"), marks=20)
    assert [(set(r.topics), r.since, r.until) for r in store.routes({})] == [
        ({1}, embedded(10), embedded(20)),
        ({1, 2}, embedded(20), None),
    ]


def test_only_versions_that_govern_nothing_more_are_forgotten(store: SqlRegistryWriter) -> None:
    put(store, a_topic(), a_subscription(), marks=10)
    put(store, a_subscription(filter=a_filter("x")), marks=20)
    put(store, a_subscription(filter=a_filter("y")), marks=30)
    kept = store.routes(embedded(20))
    assert store.forget(embedded(19)) == 0
    assert store.forget(embedded(20)) == 1
    assert store.forget(embedded(29)) == 0
    assert store.routes(embedded(20)) == kept


def test_partitions_that_a_change_does_not_name_keep_their_marks(store: SqlRegistryWriter) -> None:
    def at(**marks: int) -> Marks:
        return {Partition(int(name[1:])): Offset(offset) for name, offset in marks.items()}

    store.put([a_topic()], by="a", at=Instant(1), marks=at(p0=5, p1=7))
    store.put([a_subscription()], by="a", at=Instant(1), marks=at(p1=9))
    assert store.changes(1, 1)[0].marks == at(p0=5, p1=9)
    assert [r.since for r in store.routes({})] == [at(p0=5, p1=9)]


def test_marks_that_go_back_are_refused(store: SqlRegistryWriter) -> None:
    put(store, a_topic(), marks=10)
    with pytest.raises(DataFolderUnusable, match="the log ends before"):
        put(store, a_topic("b"), marks=9)
    assert store.revision() == 1


def test_a_change_made_by_another_writer_is_seen_before_the_next(store: SqlRegistryWriter, tmp_path: Path) -> None:
    put(store, a_topic("a"))
    with open_writer(tmp_path) as other:
        put(other, a_topic("b"), a_subscription("s", "b"))
    assert len(store.snapshot().topics) == 2
    assert put(store, a_topic("c"), a_subscription("t", "b"))[0].number == 3  # type: ignore[union-attr]
    assert store.revision() == 3


def test_a_snapshot_never_mixes_two_revisions(store: SqlRegistryWriter, tmp_path: Path) -> None:
    """Revision n writes n into both topics: a reader that saw two revisions at once would see them differ."""
    stop = threading.Event()

    def change() -> None:
        n = store.revision()
        while not stop.is_set():
            n += 1
            put(store, a_topic("a", description=str(n)), a_topic("b", description=str(n)))

    put(store, a_topic("a", description="1"), a_topic("b", description="1"))
    thread = threading.Thread(target=change)
    thread.start()
    try:
        with open_reader(tmp_path) as reader:
            seen = [reader.snapshot() for _ in range(200)]
    finally:
        stop.set()
        thread.join()
    assert all({int(t.description) for t in s.topics.values()} == {s.revision} for s in seen)


def test_the_current_registry_reads_again_only_after_a_change(store: SqlRegistryWriter, tmp_path: Path) -> None:
    current = CurrentRegistry(open_reader(tmp_path))
    held = current.snapshot
    assert not current.refresh()
    assert current.snapshot is held
    put(store, a_topic())
    assert current.snapshot is held
    assert current.refresh()
    assert list(current.snapshot.topics) == [a_name("orders")]
