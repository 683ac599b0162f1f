"""Retention of subscriptions: what was in force when an event was published holds for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builders import a_name, a_subscription, a_topic
from tidings.clock import SECOND, Instant
from tidings.log.position import EMBEDDED, Offset, Position, embedded
from tidings.registry.model import Name, NamespaceSource, Pull, Snapshot, Stream, Subscription
from tidings.registry.rules.retention import RetentionPeriod, Retentions, topics_kept
from tidings.registry.store import SqlRegistryWriter, open_reader, open_writer

HOUR, DAY = 3600.0, 86400.0


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlRegistryWriter]:
    with open_writer(tmp_path) as writer:
        writer.put([a_topic("orders")], by="ann", at=Instant(1), marks=embedded(0))
        yield writer


def put(store: SqlRegistryWriter, retention: float | None, marks: int, **fields: object) -> None:
    document = a_subscription("billing", retention=retention, **fields)
    store.put([document], by="ann", at=Instant(1), marks=embedded(marks))


def kept(snapshot: Snapshot, offset: int) -> float:
    billing = snapshot.subscriptions[a_name("billing")]
    return Retentions(snapshot, 7 * DAY).of(billing).at(at(offset))


def at(offset: int) -> Position:
    return Position(EMBEDDED, Offset(offset))


def test_an_event_keeps_the_retention_it_was_published_under(store: SqlRegistryWriter, tmp_path: Path) -> None:
    put(store, 7 * DAY, 0)
    put(store, HOUR, 10)
    put(store, None, 20)
    with open_reader(tmp_path) as reader:
        for snapshot in (store.snapshot(), reader.snapshot()):
            assert [kept(snapshot, offset) for offset in (1, 10, 11, 20, 21)] == [7 * DAY, 7 * DAY, HOUR, HOUR, 7 * DAY]


def test_changes_of_something_else_leave_no_trace(store: SqlRegistryWriter, tmp_path: Path) -> None:
    put(store, HOUR, 0)
    put(store, HOUR, 10, delivery=Stream())
    put(store, DAY, 20)
    put(store, DAY, 30, delivery=Pull())
    with open_reader(tmp_path) as reader:
        assert reader.snapshot().former == store.snapshot().former
        assert [one.seconds for one in reader.snapshot().former[reader.snapshot().subscriptions[a_name("billing")].lane]] == [
            HOUR
        ]


def test_an_ended_subscription_has_no_former_retention(store: SqlRegistryWriter, tmp_path: Path) -> None:
    put(store, HOUR, 0)
    put(store, DAY, 10)
    store.delete(Subscription, a_name("billing"), by="ann", at=Instant(1), marks=embedded(20))
    with open_reader(tmp_path) as reader:
        assert store.snapshot().former == reader.snapshot().former == {}


def test_without_one_of_its_own_the_longest_of_its_topics_holds() -> None:
    topics = {Name("shop", name): a_topic(f"shop:{name}", retention=seconds) for name, seconds in (("a", HOUR), ("b", DAY))}
    snapshot = Snapshot(revision=1, topics=topics)
    whole = a_subscription("whole", source=NamespaceSource("shop"))
    assert Retentions(snapshot, 7 * DAY).of(whole) == RetentionPeriod(DAY)
    assert Retentions(snapshot, 7 * DAY).of(a_subscription("one", "shop:a")) == RetentionPeriod(HOUR)


def test_until_is_counted_from_publishing() -> None:
    former = RetentionPeriod(HOUR, ((embedded(5), 2 * HOUR),))
    assert [former.until(at(offset), Instant(0)) for offset in (5, 6)] == [Instant(7200 * SECOND), Instant(3600 * SECOND)]
    assert former.longest == 2 * HOUR


def test_a_topic_is_kept_as_long_as_anybody_needs_it(store: SqlRegistryWriter) -> None:
    put(store, 3 * DAY, 0)
    store.put([a_topic("orders", retention=HOUR), a_topic("other")], by="ann", at=Instant(1), marks=embedded(5))
    numbers = {str(name): topic.number for name, topic in store.snapshot().topics.items()}
    wanted = {numbers["orders"]: 3 * DAY, numbers["other"]: 7 * DAY}
    assert topics_kept(store.snapshot(), 7 * DAY) == wanted
    put(store, 60.0, 10)
    assert topics_kept(store.snapshot(), 7 * DAY) == wanted, "events from before are kept as they were"
    whole = a_subscription("whole", source=NamespaceSource("default"), retention=9 * DAY)
    store.put([whole], by="ann", at=Instant(1), marks=embedded(10))
    assert set(topics_kept(store.snapshot(), 7 * DAY).values()) == {9 * DAY}
