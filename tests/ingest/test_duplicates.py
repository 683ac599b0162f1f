from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.api_process import CLOUDEVENT, an_api
from tests.builders import a_topic, an_event
from tidings import config
from tidings.clock import ManualClock
from tidings.errors import DuplicateEvent, LogUnavailable, Malformed
from tidings.events.model import Event, key_hash
from tidings.events.stored import head_of
from tidings.ingest.claims import ClaimsTable, content_of, key_of, slice_of
from tidings.ingest.duplicates import Checked, DuplicateCheck, window_of, windows_of
from tidings.log.port import Draft, Limit
from tidings.log.position import Position, TopicNumber
from tidings.log.sqlite.reader import SqliteLogReader
from tidings.log.sqlite.writer import SqliteLogWriter
from tidings.registry.model import Snapshot

TOPIC = TopicNumber(1)
HOUR = 3600.0
SETTINGS = config.load(environ={})


class RefusingLog:
    """A log that refuses the first append and forwards the rest."""

    def __init__(self, log: SqliteLogWriter) -> None:
        self._log = log
        self._refuse = True

    async def append(self, drafts: Sequence[Draft]) -> Sequence[Position]:
        await asyncio.sleep(0)
        if self._refuse:
            self._refuse = False
            raise LogUnavailable("the disk is full")
        return await self._log.append(drafts)


@dataclass
class World:
    """A log and a duplicate check over it, as after a start."""

    folder: Path
    clock: ManualClock
    log: SqliteLogWriter
    reader: SqliteLogReader
    check: DuplicateCheck

    async def publish(self, *events: Event, window: float = 24 * HOUR) -> Sequence[Position]:
        at = self.clock.now()
        drafts = [Draft(TOPIC, at, key_hash(event.id), head_of(event), event.data) for event in events]
        return await self.check.append(Checked(TOPIC, window, events, drafts))

    def stored(self) -> int:
        return len(self.reader.read(TOPIC, {}, Limit()).entries)


@asynccontextmanager
async def a_world(
    folder: Path, clock: ManualClock, log_of: Callable[[SqliteLogWriter], Any] = lambda log: log
) -> AsyncIterator[World]:
    """Ends without saving anything of the check, as a crash does; the log keeps what it acknowledged."""
    log = SqliteLogWriter(folder, SETTINGS.log)
    reader = SqliteLogReader(folder)
    check = DuplicateCheck(ClaimsTable(folder / "duplicates.db"), log_of(log), clock)
    running = asyncio.create_task(check.run(reader, {TOPIC: 24 * HOUR}))
    try:
        yield World(folder, clock, log, reader, check)
    finally:
        running.cancel()
        await log.close()


def lose(folder: Path, pattern: str) -> None:
    for path in folder.glob(pattern):
        path.unlink()


def run(body: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(body())


def test_the_same_event_again_is_accepted_and_not_stored_twice(tmp_path: Path) -> None:
    async def body() -> None:
        async with a_world(tmp_path, ManualClock()) as world:
            assert len(await world.publish(an_event(b"1"))) == 1
            assert len(await world.publish(an_event(b"1"))) == 0
            assert world.stored() == 1

    run(body)


def test_other_content_under_the_same_source_and_id_is_refused(tmp_path: Path) -> None:
    async def body() -> None:
        async with a_world(tmp_path, ManualClock()) as world:
            await world.publish(an_event(b"1"))
            with pytest.raises(DuplicateEvent) as refused:
                await world.publish(an_event(b"1", id="2"), an_event(b"2"))
            assert [fault.index for fault in refused.value.faults] == [1]
            assert world.stored() == 1

    run(body)


def test_the_same_id_from_another_source_is_another_event(tmp_path: Path) -> None:
    async def body() -> None:
        async with a_world(tmp_path, ManualClock()) as world:
            await world.publish(an_event(b"1"))
            assert len(await world.publish(an_event(b"2", source="/elsewhere"))) == 1

    run(body)


def test_a_batch_may_hold_the_same_event_twice_and_stores_it_once(tmp_path: Path) -> None:
    async def body() -> None:
        async with a_world(tmp_path, ManualClock()) as world:
            assert len(await world.publish(an_event(b"1"), an_event(b"1"), an_event(b"1", id="2"))) == 2
            with pytest.raises(DuplicateEvent):
                await world.publish(an_event(b"1", id="3"), an_event(b"2", id="3"))
            assert world.stored() == 2

    run(body)


def test_concurrent_publishers_of_the_same_event_store_it_once(tmp_path: Path) -> None:
    async def body() -> None:
        async with a_world(tmp_path, ManualClock()) as world:
            taken = await asyncio.gather(*(world.publish(an_event(b"1")) for _ in range(50)))
            assert sum(map(len, taken)) == world.stored() == 1

    run(body)


def test_who_waits_for_a_publish_that_fails_stores_the_event_itself(tmp_path: Path) -> None:
    async def body() -> None:
        async with a_world(tmp_path, ManualClock(), RefusingLog) as world:
            taken = await asyncio.gather(*(world.publish(an_event(b"1")) for _ in range(3)), return_exceptions=True)
            assert [isinstance(one, LogUnavailable) for one in taken].count(True) == 1
            assert world.stored() == 1

    run(body)


def test_claims_that_were_never_saved_are_read_from_the_log_after_a_crash(tmp_path: Path) -> None:
    async def body() -> None:
        clock = ManualClock()
        async with a_world(tmp_path, clock) as world:
            await world.publish(an_event(b"1"))
        async with a_world(tmp_path, clock) as world:
            assert len(await world.publish(an_event(b"1"))) == 0
            with pytest.raises(DuplicateEvent):
                await world.publish(an_event(b"2"))

    run(body)


def test_a_lost_file_is_made_again_from_the_log(tmp_path: Path) -> None:
    async def body() -> None:
        clock = ManualClock()
        async with a_world(tmp_path, clock) as world:
            await world.publish(an_event(b"1"))
            await world.check.flush()
        lose(tmp_path, "duplicates.db*")
        async with a_world(tmp_path, clock) as world:
            assert len(await world.publish(an_event(b"1"))) == 0

    run(body)


def test_saved_claims_hold_after_the_log_has_let_their_events_go(tmp_path: Path) -> None:
    async def body() -> None:
        clock = ManualClock()
        async with a_world(tmp_path, clock) as world:
            await world.publish(an_event(b"1"), window=math.inf)
            await world.check.flush()
            assert len(await world.publish(an_event(b"1"), window=math.inf)) == 0
        lose(tmp_path, "log.db*")
        async with a_world(tmp_path, clock) as world:
            clock.advance(400 * 86400)
            assert len(await world.publish(an_event(b"1"), window=math.inf)) == 0

    run(body)


@pytest.mark.parametrize("flushed", [False, True])
def test_outside_of_its_window_an_event_may_come_again(tmp_path: Path, flushed: bool) -> None:
    async def body() -> None:
        clock = ManualClock()
        async with a_world(tmp_path, clock) as world:
            for _ in range(2):
                assert len(await world.publish(an_event(b"1"), window=10)) == 1
                clock.advance(9)
                if flushed:
                    await world.check.flush()
                assert len(await world.publish(an_event(b"1"), window=10)) == 0
                clock.advance(2)
            assert world.stored() == 2

    run(body)


def test_slices_that_nobody_looks_back_to_are_removed(tmp_path: Path) -> None:
    async def body() -> None:
        clock = ManualClock()
        async with a_world(tmp_path, clock) as world:
            await world.publish(*(an_event(b"1", id=str(n)) for n in range(20)), window=8 * HOUR)
            await world.check.flush()
            await world.check.forget({TOPIC: 8 * HOUR})
            assert len(await world.publish(an_event(b"1"), window=8 * HOUR)) == 0
            clock.advance(10 * HOUR)
            await world.check.forget({TOPIC: 8 * HOUR})
            assert ClaimsTable(tmp_path / "duplicates.db").slices() == []

    run(body)


def test_content_is_attributes_in_any_order_and_payload_but_no_transport_headers() -> None:
    one, other = an_event(b"1", a="1", b="2"), an_event(b"1", b="2", a="1")
    assert content_of(one) == content_of(other)
    assert content_of(Event(one.attributes, b"1", False, {"traceparent": "00"})) == content_of(one)
    assert content_of(an_event(b"2", a="1", b="2")) != content_of(one)
    assert content_of(an_event(None)) != content_of(an_event(b""))


def test_source_and_id_are_not_mixed_up() -> None:
    assert key_of(TOPIC, an_event(source="/a", id="bc")) != key_of(TOPIC, an_event(source="/ab", id="c"))


def test_a_window_has_about_eight_slices() -> None:
    ends = {slice_of(ManualClock(second * 1_000_000).now(), 86400) for second in range(0, 86400, 60)}
    assert len(ends) == 8


@pytest.mark.parametrize(("setting", "window"), [("off", None), ("forever", math.inf), ("24h", 86400.0), ("90", 90.0)])
def test_settings_say_how_far_back_is_looked(setting: str, window: float | None) -> None:
    assert window_of(setting) == window


def test_a_setting_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(Malformed):
        window_of("sometimes")


def test_only_checked_topics_have_a_window() -> None:
    topics = [a_topic("a", number=TopicNumber(1)), a_topic("b", number=TopicNumber(2), duplicates="1h")]
    assert windows_of(Snapshot(revision=1, topics={one.name: one for one in topics}), SETTINGS.topics) == {2: 3600.0}


def test_over_http_the_same_event_gets_202_and_another_one_409(tmp_path: Path) -> None:
    kind = "application/cloudevents+json"
    with an_api(tmp_path) as api:
        api.call("PUT", "/api/topics/orders", {"duplicates": "24h"})
        assert api.publish("orders", CLOUDEVENT, kind).status == 202
        assert api.publish("orders", CLOUDEVENT, kind).json == {"accepted": 1}
        refused = api.publish("orders", {**CLOUDEVENT, "data": None}, kind)
        assert (refused.status, refused.json["code"]) == (409, "duplicate-event")
    with an_api(tmp_path) as api:
        assert api.publish("orders", CLOUDEVENT, kind).json == {"accepted": 1}
        assert len(api.events("orders")) == 1
