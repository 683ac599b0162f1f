"""Whatever is killed in the middle of a stream: every event arrives, in order, and repeats are only what was on its way."""

from __future__ import annotations

import http.client
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.api_process import ApiProcess
from tests.doors.sse.worlds import Reader, Streaming
from tests.hub import free_port
from tests.polling import until
from tidings.lanes.sqlite.writer import SqliteLanesWriter
from tidings.log.position import LaneNumber

EVENTS = 400
STREAM = "/api/subscriptions/victim/stream"
ROOT = Path(__file__).parents[3]


class Killable:
    """The api part as a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.api = ApiProcess(free_port(), folder)
        self.process = self._started()

    def restart(self) -> None:
        self.process.kill()
        self.process.wait()
        self.process = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "tests.doors.sse.api_alone", str(self.api.data), str(self.api.port)]
        process = subprocess.Popen(command, cwd=ROOT)
        until(self._answers)
        return process

    def _answers(self) -> bool:
        with suppress(OSError, http.client.HTTPException):
            return self.api.call("GET", "/api/topics").status == 200
        return False


@contextmanager
def running(folder: Path) -> Iterator[tuple[Killable, Streaming]]:
    killable = Killable(folder)
    killable.api.call("PUT", "/api/topics/orders", {})
    world = Streaming(killable.api, SqliteLanesWriter(folder))
    world.start_deliver()
    try:
        yield killable, world
    finally:
        killable.process.kill()
        killable.process.wait()
        world.kill_deliver()
        world.lanes.close()


def test_an_api_that_is_killed_in_the_middle_loses_nothing(tmp_path: Path) -> None:
    with running(tmp_path) as (killable, world):
        lane = published(world)
        seen: list[int] = []
        for count in (40, 70):
            reader = Reader(killable.api, STREAM)
            seen += reader.numbers(count)
            killable.restart()
            # What the kernel has taken for a reader counts as delivered, and reaches it.
            with suppress(OSError, http.client.HTTPException):
                while more := reader.numbers(1):
                    seen += more
        last = Reader(killable.api, STREAM)
        # Some of what was on its way may come twice.
        while max(seen) < EVENTS:
            seen += last.numbers(1)
        assert list(dict.fromkeys(seen)) == list(range(1, EVENTS + 1))
        world.delivered(lane, EVENTS)


def test_an_owner_that_is_killed_in_the_middle_loses_and_repeats_nothing(tmp_path: Path) -> None:
    with running(tmp_path) as (killable, world):
        lane = published(world)
        reader = Reader(killable.api, STREAM)
        seen: list[int] = []
        for count in (40, 70):
            seen += reader.numbers(count)
            world.kill_deliver()
            world.start_deliver()
        seen += reader.numbers(EVENTS - len(seen))
        # The reader never noticed: its stream went on with the new owner, without what it had seen already.
        assert seen == list(range(1, EVENTS + 1))
        world.delivered(lane, EVENTS)


def published(world: Streaming) -> LaneNumber:
    """Enough events that not all are on their way at once."""
    lane = world.subscribe("victim")
    for first in range(1, EVENTS, 100):
        world.publish(100, lane, first=first, filler=b"x" * 5000)
    return lane
