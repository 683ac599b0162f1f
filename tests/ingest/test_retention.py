from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.builders import a_draft, a_filter, a_subscription, a_topic
from tidings import config
from tidings.clock import SECOND, ManualClock
from tidings.errors import ClockLeapt
from tidings.ingest.retention import GRACE, RetentionSweep, governed_from, retentions
from tidings.lanes.sink import Routed
from tidings.lanes.sqlite.lanes import EmbeddedLanes
from tidings.lanes.sqlite.writer import SqliteLanesReader, SqliteLanesWriter
from tidings.log.port import Limit
from tidings.log.position import COMMANDS, EMBEDDED, TopicNumber, embedded
from tidings.log.sqlite.reader import SqliteLogReader
from tidings.log.sqlite.writer import SqliteLogWriter
from tidings.registry.fenced_changes import FencedChanges
from tidings.registry.model import Change, Topic
from tidings.registry.port import RegistryWriter
from tidings.registry.store import open_writer

DAY = 86400
SETTINGS = config.load(environ={})


def changes_of(log: SqliteLogWriter, registry: RegistryWriter) -> FencedChanges:
    return FencedChanges(log, registry, lambda: None)


def lanes_in(folder: Path) -> EmbeddedLanes:
    return EmbeddedLanes(SqliteLanesReader(folder), SqliteLogReader(folder))


def a_change(revision: int, at: int, end: int) -> Change:
    return Change(revision=revision, at=at, by="me", action="create", kind="topic", name="x", marks=embedded(end))  # type: ignore[arg-type]


def test_every_topic_has_its_own_time_and_an_hour_of_grace() -> None:
    now = ManualClock().now()
    found = {
        one.topic: now - one.before for one in retentions([(TopicNumber(1), None), (TopicNumber(2), 60.0)], 7.0 * DAY, now)
    }
    assert found == {COMMANDS: (7 * DAY + GRACE) * SECOND, 1: (7 * DAY + GRACE) * SECOND, 2: (60 + GRACE) * SECOND}


def test_versions_are_kept_as_long_as_an_event_they_governed() -> None:
    now = ManualClock().now()
    changes = [a_change(n, now - age * DAY * SECOND, 10 * n) for n, age in ((1, 20), (2, 9), (3, 2))]
    assert governed_from(changes, 7 * DAY, embedded(100), now) == {EMBEDDED: 20}
    assert governed_from(changes, 7 * DAY, embedded(15), now) == {EMBEDDED: 15}
    assert governed_from(changes[2:], 7 * DAY, embedded(100), now) == {}


def test_a_sweep_removes_what_is_old_and_routed_also_of_deleted_topics(tmp_path: Path) -> None:
    asyncio.run(_swept(tmp_path))


async def _swept(folder: Path) -> None:
    clock = ManualClock()
    log, reader, registry = SqliteLogWriter(folder, SETTINGS.log), SqliteLogReader(folder), open_writer(folder)
    lanes = SqliteLanesWriter(folder)
    by = {"by": "me", "at": clock.now(), "marks": embedded(0)}
    registry.put([a_topic("short", retention=60.0), a_topic("long"), a_topic("gone", retention=60.0)], **by)
    numbers = {str(name): topic.number for name, topic in registry.snapshot().topics.items()}
    for name in ("short", "long", "gone", "short"):
        await log.append([a_draft(topic=numbers[name], at=clock.now())])
    registry.delete(Topic, a_topic("gone").name, by="me", at=clock.now(), marks=embedded(4))
    sweep = RetentionSweep(log, lanes_in(folder), registry, changes_of(log, registry), SETTINGS.topics.retention, clock)
    assert await sweep.sweep(registry.snapshot()) == 0
    clock.advance(60 + GRACE + 1)
    assert await sweep.sweep(registry.snapshot()) == 0, "nothing was routed yet"
    lanes.write(Routed((), embedded(3)))
    assert await sweep.sweep(registry.snapshot()) == 2, "the first of `short` and that of `gone`"
    left = reader.scan({}, reader.ends(), Limit()).entries
    assert [(entry.topic, entry.position.offset) for entry in left] == [(numbers["long"], 2), (numbers["short"], 4)]
    await log.close()


def test_superseded_versions_go_when_their_events_have_gone(tmp_path: Path) -> None:
    asyncio.run(_forgotten(tmp_path))


async def _forgotten(folder: Path) -> None:
    clock = ManualClock()
    log, registry, lanes = SqliteLogWriter(folder, SETTINGS.log), open_writer(folder), SqliteLanesWriter(folder)
    sweep = RetentionSweep(log, lanes_in(folder), registry, changes_of(log, registry), SETTINGS.topics.retention, clock)
    registry.put([a_topic()], by="me", at=clock.now(), marks=embedded(0))
    for n in range(3):
        registry.put([a_subscription(filter=a_filter(f"total > {n}"))], by="me", at=clock.now(), marks=embedded(n))
        await log.append([a_draft(topic=1, at=clock.now())])
        lanes.write(Routed((), embedded(n + 1)))
    await sweep.sweep(registry.snapshot())
    assert len(registry.routes({})) == 3
    clock.advance(SETTINGS.topics.retention + GRACE + 1)
    await sweep.sweep(registry.snapshot())
    assert len(registry.routes({})) == 1
    await log.close()


def test_a_clock_that_leaps_forward_removes_nothing_until_it_is_right_again(tmp_path: Path) -> None:
    async def steps() -> None:
        clock = ManualClock()
        log, registry, lanes = SqliteLogWriter(tmp_path, SETTINGS.log), open_writer(tmp_path), SqliteLanesWriter(tmp_path)
        registry.put([a_topic("orders", retention=3600.0)], by="me", at=clock.now(), marks=embedded(0))
        await log.append([a_draft(topic=1, at=clock.now())])
        lanes.write(Routed((), embedded(1)))
        sweep = RetentionSweep(
            log,
            lanes_in(tmp_path),
            registry,
            changes_of(log, registry),
            SETTINGS.topics.retention,
            clock,
        )
        clock.leap(9 * DAY)
        with pytest.raises(ClockLeapt, match="leapt forward by 216 hours"):
            await sweep.sweep(registry.snapshot())
        assert sweep.leapt() == 9 * DAY
        clock.leap(-9 * DAY)
        assert await sweep.sweep(registry.snapshot()) == 0
        clock.advance(9 * DAY)
        assert await sweep.sweep(registry.snapshot()) == 1, "time that passes is no leap"
        await log.close()

    asyncio.run(steps())
