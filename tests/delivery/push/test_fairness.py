"""A thousand subscriptions, some of whose endpoints are dead, hang, drip or never end: the healthy ones do not notice."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

from tests.delivery.worlds import World, final, in_world
from tests.polling import until_async
from tests.receivers import Answer, Receiver
from tidings.log.position import LaneNumber

HEALTHY = 950
EACH_BAD = 10
EVENTS = 6


class Endless:
    """Answers every connection with headers, and more headers, as long as somebody reads."""

    def __init__(self) -> None:
        self.url = ""
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Endless:
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            writer.write(b"HTTP/1.1 200 OK\r\n")
            while True:
                writer.write(b"x-more: " + b"y" * 1000 + b"\r\n")
                await writer.drain()
                await asyncio.sleep(0.01)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            writer.close()


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def deliver_all(world: World, lanes: list[LaneNumber], others: list[LaneNumber], first: int) -> float:
    """Publish to everyone; the seconds until the lanes have everything."""
    began = time.monotonic()
    positions = await world.publish(EVENTS, *lanes, *others, first=first)
    last = positions[-1].offset

    def done() -> bool:
        views = world.reader.lanes()
        return all(lane in views and views[lane].low_water.position.offset >= last for lane in lanes)

    await until_async(done, within=50)
    return time.monotonic() - began


def test_healthy_endpoints_do_not_notice_the_bad_ones(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        huge = Receiver([Answer(200, endless=True)])
        drip = Receiver([Answer(200, body=b"x" * 3600, pace=1.0)])
        with Receiver() as healthy, Receiver([Answer(hang=True)]) as hanging, drip, huge:
            async with Endless() as endless:
                lanes = [world.subscribe(f"good{n}", healthy.url) for n in range(HEALTHY)]
                async with world.delivering():
                    alone = await deliver_all(world, lanes, [], 1)
                    bad = {"dead": "http://127.0.0.1:9/", "hang": hanging.url, "drip": drip.url, "huge": huge.url}
                    urls = {**bad, "endless": endless.url}
                    others = [world.subscribe(f"{kind}{n}", url) for kind, url in urls.items() for n in range(EACH_BAD)]
                    files, memory, tasks = open_files(), resident(), len(asyncio.all_tasks())
                    together = await deliver_all(world, lanes, others, 1 + EVENTS)
                    again = await deliver_all(world, lanes, others, 1 + 2 * EVENTS)
                    # 50 bad lanes with at most 16 requests each at first, and as many tasks; both ends of a socket are ours here.
                    assert len(asyncio.all_tasks()) - tasks <= 50 * 18
                    assert open_files() - files <= 2 * 50 * 18
                    assert resident() - memory < 200 << 20
        # A bound that holds on a noisy machine: five per cent bad ones, and not three times slower.
        assert max(together, again) < 3 * alone + 5
        assert {world.reader.lane(lane).delivered for lane in lanes} == {3 * EVENTS}

    in_world(tmp_path, scenario, attempt_timeout="3s", total_inflight=1000)


def test_endpoints_that_answer_late_leave_a_reserve_to_those_that_answer_quickly(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        with Receiver() as healthy, Receiver([Answer(200, delay=50)]) as late:
            quick = world.subscribe("quick", healthy.url)
            others = [world.subscribe(f"late{n}", late.url, attempt_timeout=60.0) for n in range(20)]
            async with world.delivering():
                await world.publish(1, quick)
                await final(world, quick, 1)
                await world.publish(1, *others, first=2)
                await asyncio.to_thread(late.wait_for, 6)
                await world.publish(30, quick, first=3)
                await final(world, quick, 32)
            assert len(late.arrivals) == 6

    in_world(tmp_path, scenario, total_inflight=8)
