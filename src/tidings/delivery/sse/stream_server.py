"""Takes streams for the lanes of one deliver worker, on a Unix socket. A lane has one stream: a second one ends the first.

The second begins when the first has said what its client took, so that both together get each entry once, if they can.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from pathlib import Path

from tidings.clock import Clock
from tidings.delivery.push.engine import Engine
from tidings.delivery.push.lane.push_lane import PushLane
from tidings.delivery.sse.replay import Replay
from tidings.delivery.sse.socket_protocol import StreamEnd, StreamOptions, socket_path
from tidings.delivery.sse.stream import StreamConnection
from tidings.log.position import LaneNumber

BACKLOG = 2048

logger = logging.getLogger("tidings.delivery")


class StreamServer:
    """Listens from `start` to `close`. `refresh` makes the engine follow the registry: a lane may be younger than it knows."""

    def __init__(self, engine: Engine, clock: Clock, most: int, refresh: Callable[[], None]) -> None:
        self._engine = engine
        self._clock = clock
        self._most = most
        self._refresh = refresh
        self._open: set[StreamConnection] = set()
        self._next: dict[LaneNumber, tuple[StreamConnection, StreamOptions]] = {}
        self._server: asyncio.Server | None = None
        self._path: Path | None = None

    @property
    def open(self) -> int:
        """How many streams are open."""
        return len(self._open)

    async def start(self, folder: Path, worker: int) -> None:
        """Take streams from now on. Where no socket can be made, callbacks are served all the same."""
        self._path = socket_path(folder, worker)
        # That of a predecessor that was killed: the data folder has one worker of each number.
        with contextlib.suppress(OSError):
            self._path.unlink()
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_unix_server(self._connection, str(self._path), backlog=BACKLOG)
            self._path.chmod(0o600)
        except OSError as error:
            logger.error("no streams can be opened: %s cannot be made (%s)", self._path, error)

    async def close(self) -> None:
        """End every stream. What was not taken is open again; doors may come back when the worker does."""
        if self._server is not None:
            self._server.close()
        for stream in [*self._open, *(waiting for waiting, _ in self._next.values())]:
            stream.close()
        self._next.clear()
        if self._path is not None:
            with contextlib.suppress(OSError):
                self._path.unlink()

    def _connection(self) -> StreamConnection:
        return StreamConnection(self._engine, self._begin, self._ended)

    def _begin(self, stream: StreamConnection, wish: StreamOptions) -> None:
        lane = self._lane(wish.lane)
        if lane is None or lane.deleted:
            stream.end(StreamEnd.GONE)
        elif lane.policy is None or not lane.policy.streamed:
            stream.end(StreamEnd.NOT_STREAMED)
        elif wish.terminate:
            self._end(lane, StreamEnd.TERMINATED)
            stream.end(StreamEnd.TERMINATED)
        elif lane.barred:
            stream.end(StreamEnd.BARRED)
        elif not lane.streaming:
            stream.end(StreamEnd.STOPPED)
        elif len(self._open) >= self._most and lane.listener is None:
            stream.end(StreamEnd.TOO_MANY)
        elif self._end(lane, StreamEnd.REPLACED):
            self._next[lane.number] = stream, wish
        else:
            self._attach(stream, lane, wish)

    def _ended(self, stream: StreamConnection) -> None:
        """A connection is gone: who waits for its lane comes next."""
        self._open.discard(stream)
        lane = stream.lane
        if lane is None:
            for number in [number for number, (waiting, _) in self._next.items() if waiting is stream]:
                del self._next[number]
        elif lane.listener is None and lane.number in self._next:
            self._begin(*self._next.pop(lane.number))

    def _lane(self, number: LaneNumber) -> PushLane | None:
        lane = self._engine.lane(number)
        if lane is None or lane.policy is None or not lane.policy.streamed or lane.barred:
            self._refresh()
            lane = self._engine.lane(number)
        return lane

    def _end(self, lane: PushLane, ending: StreamEnd) -> bool:
        """End the lane's stream, and whoever waits for it to end. Whether there is one that has to finish first."""
        waiting = self._next.pop(lane.number, None)
        if waiting is not None:
            waiting[0].end(ending)
        if not isinstance(lane.listener, StreamConnection):
            return False
        if waiting is None:
            lane.listener.finish(ending)
        return True

    def _attach(self, stream: StreamConnection, lane: PushLane, wish: StreamOptions) -> None:
        # What waited for another try of a callback goes out now.
        lane.state.due_at_once(self._clock.now())
        self._open.add(stream)
        replay = None if wish.after is None else Replay(lane, self._engine, self._clock, wish.after)
        stream.attach(lane, replay, wish)
