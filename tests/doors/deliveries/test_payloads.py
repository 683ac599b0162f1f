"""Payloads that events refer to: what projections left, until retention ends (HOR-146)."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.builders import a_name, a_subscription, an_event
from tests.delivery.worlds import World, in_world
from tidings.clock import ManualClock
from tidings.doors.deliveries.payloads import payload_at
from tidings.errors import Expired, NotFound
from tidings.events.stored import head_of
from tidings.lanes.sink import Part, PartKey, Routed
from tidings.lanes.sqlite.block import packed
from tidings.lanes.sqlite.lanes import EmbeddedLanes
from tidings.lanes.sqlite.writer import SqliteLanesReader
from tidings.log.port import Draft
from tidings.log.position import EMBEDDED, Offset, Position, embedded
from tidings.log.sqlite.events import SqliteEventLog
from tidings.log.sqlite.reader import SqliteLogReader

DIGEST = b"d" * 16


def parts_of(world: World, clock: ManualClock) -> Any:
    """The few parts that are needed, real ones."""
    folder = world.settings.data
    reader = SqliteLogReader(folder)
    lanes, events = EmbeddedLanes(SqliteLanesReader(folder), reader), SqliteEventLog(reader)
    return SimpleNamespace(events=events, lanes=lanes, snapshot=world.registry.snapshot(), settings=world.settings, clock=clock)


def test_a_payload_is_what_the_projection_left_until_its_retention_ends(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        clock = ManualClock()
        document = a_subscription("billing", retention=60.0)
        (stored,) = world.registry.put([document], by="test", at=clock.now(), marks=embedded(0))
        subscription = world.registry.snapshot().subscriptions[a_name("billing")]
        head = head_of(an_event(datacontenttype="application/vnd.shop+json"))
        drafts = [Draft(world.topic, clock.now(), 0, head, b'{"whole": 1}') for _ in range(3)]
        whole, part, other = await world.log.append(drafts)
        digests = b"\0" * 16 + DIGEST
        blocks = [packed(subscription.lane, [whole.offset, part.offset], digests)]
        bodies = [Part(PartKey(part, DIGEST), b'{"part": 1}')]
        world.lanes.write(Routed(runs=blocks, scanned=embedded(other.offset), parts=bodies))
        parts = parts_of(world, clock)
        assert await payload_at(parts, subscription, whole) == ("application/vnd.shop+json", b'{"whole": 1}')
        assert (await payload_at(parts, subscription, part)).data == b'{"part": 1}'
        with pytest.raises(NotFound):
            await payload_at(parts, subscription, other)
        with pytest.raises(NotFound):
            await payload_at(parts, subscription, Position(EMBEDDED, Offset(other.offset + 1)))
        clock.advance(61)
        with pytest.raises(Expired):
            await payload_at(parts, subscription, part)
        await world.expire(clock.now())
        with pytest.raises(Expired):
            await payload_at(parts, subscription, part)
        assert stored

    in_world(tmp_path, scenario)
