"""Thousands of open streams in one process: each event reaches each of them, and all is free again when they leave."""

from __future__ import annotations

import asyncio
import resource
from pathlib import Path

import pytest

from tests.api_process import ApiProcess
from tests.doors.sse.worlds import Streaming, streaming
from tests.polling import until
from tidings.log.position import LaneNumber
from tidings.registry.store import open_reader

MANY = 2000
FILES = 3 * MANY + 500


@pytest.fixture
def world(tmp_path: Path) -> object:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < FILES:
        pytest.skip(f"this machine allows only {hard} open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, FILES), hard))
    with streaming(tmp_path) as world:
        yield world
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_two_thousand_streams_get_every_event_and_leave_nothing_behind(world: Streaming) -> None:
    lanes = subscribed(world)
    asyncio.run(asyncio.wait_for(read_all(world, lanes), 480))
    until(lambda: world.open_streams() == 0)
    until(lambda: all(world.delivery.lane(lane).delivered >= 2 for lane in lanes))


async def read_all(world: Streaming, lanes: list[LaneNumber]) -> None:
    gate = asyncio.Semaphore(100)
    readers = await asyncio.gather(*(opened(world.api, n, gate) for n in range(MANY)))
    await asyncio.to_thread(until, lambda: world.open_streams() == MANY, 60)
    await asyncio.to_thread(world.publish, 2, *lanes)
    seen = await asyncio.gather(*(two_events(reader) for reader, _ in readers))
    assert seen == [[b'"n":1', b'"n":2']] * MANY
    for _, writer in readers:
        writer.close()


def subscribed(world: Streaming) -> list[LaneNumber]:
    names = [f"s{n}" for n in range(MANY)]
    wanted = {name: {"topic": "orders", "delivery": {"kind": "sse"}} for name in names}
    answer = world.api.call("POST", "/api/apply", {"subscriptions": wanted})
    assert answer.status == 200, answer.body
    with open_reader(world.api.data) as registry:
        return [subscription.lane for subscription in registry.snapshot().subscriptions.values()]


async def opened(api: ApiProcess, number: int, gate: asyncio.Semaphore) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    async with gate:
        reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
        writer.write(b"GET /api/subscriptions/s%d/stream HTTP/1.1\r\nhost: localhost\r\n\r\n" % number)
        head = await reader.readuntil(b"\r\n\r\n")
        assert b" 200 " in head, head
        return reader, writer


async def two_events(reader: asyncio.StreamReader) -> list[bytes]:
    found: list[bytes] = []
    while len(found) < 2:
        line = await reader.readline()
        if line.startswith(b"data: "):
            found.append(line[line.index(b'"n"') :].partition(b",")[0].rstrip(b"}\n"))
    return found
