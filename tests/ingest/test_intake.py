from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.builders import a_name, a_topic, an_event
from tidings import config
from tidings.clock import Instant, SystemClock
from tidings.errors import DuplicateEvent, InvalidEvent
from tidings.events.model import Event
from tidings.ingest.admission import UNCHECKED, Admissions
from tidings.ingest.claims import ClaimsTable
from tidings.ingest.counters import PublishCounters
from tidings.ingest.duplicates import DuplicateCheck
from tidings.ingest.intake import Intake, Submission
from tidings.log.port import Limit
from tidings.log.position import Position, TopicNumber
from tidings.log.sqlite.reader import SqliteLogReader
from tidings.log.sqlite.writer import SqliteLogWriter
from tidings.registry.model import Snapshot

SETTINGS = config.load(environ={})
SCHEMA = {"type": "object", "required": ["total"]}


@asynccontextmanager
async def an_intake(folder: Path, **topic: Any) -> AsyncIterator[Intake]:
    log = SqliteLogWriter(folder, SETTINGS.log)
    snapshot = Snapshot(revision=1, topics={a_name(): a_topic(number=TopicNumber(1), **topic)})
    check = DuplicateCheck(ClaimsTable(folder / "duplicates.db"), log, SystemClock())
    reader = SqliteLogReader(folder)
    task = asyncio.ensure_future(check.run(reader, {TopicNumber(1): 3600.0}))
    try:
        yield Intake(Admissions(lambda: snapshot, SETTINGS.topics, SETTINGS.ingest), log, check, PublishCounters())
    finally:
        task.cancel()
        await check.close()
        reader.close()
        await log.close()


async def accept(intake: Intake, *events: Event, payloads: Sequence[Any] | None = None) -> Sequence[Position]:
    return await intake.accept(Submission(intake.admission("orders"), events, Instant(1), payloads))


def stored(folder: Path) -> int:
    return len(SqliteLogReader(folder).read(TopicNumber(1), {}, Limit()).entries)


def test_an_event_is_durable_when_it_was_accepted(tmp_path: Path) -> None:
    async def body() -> None:
        async with an_intake(tmp_path) as intake:
            assert len(await accept(intake, an_event(), an_event(id="2"))) == 2
            assert stored(tmp_path) == 2
            assert await accept(intake) == ()

    asyncio.run(body())


def test_a_topic_that_looks_for_duplicates_gets_an_event_once_whatever_the_door(tmp_path: Path) -> None:
    async def body() -> None:
        async with an_intake(tmp_path, duplicates="1h") as intake:
            assert len(await accept(intake, an_event())) == 1
            assert await accept(intake, an_event()) == ()
            with pytest.raises(DuplicateEvent):
                await accept(intake, an_event(data=b'{"other":1}'))
            assert stored(tmp_path) == 1

    asyncio.run(body())


@pytest.mark.parametrize("payloads", [None, [{"wrong": 1}]])
def test_nothing_is_stored_of_a_request_that_breaks_the_schema(payloads: Any, tmp_path: Path) -> None:
    async def body() -> None:
        async with an_intake(tmp_path, schema=SCHEMA) as intake:
            with pytest.raises(InvalidEvent, match="total") as caught:
                await accept(intake, an_event(data=b'{"wrong":1}'), payloads=payloads)
            assert caught.value.faults[0].pointer == ""
            assert stored(tmp_path) == 0

    asyncio.run(body())


def test_a_payload_that_was_parsed_is_not_parsed_again_and_one_without_a_schema_is_not_checked(tmp_path: Path) -> None:
    async def body() -> None:
        async with an_intake(tmp_path, schema=SCHEMA) as intake:
            assert len(await accept(intake, an_event(data=b"no JSON"), payloads=[{"total": 1}])) == 1
            assert len(await accept(intake, an_event(data=b"no JSON"), payloads=[UNCHECKED])) == 1

    asyncio.run(body())
