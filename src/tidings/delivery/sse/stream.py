"""One open stream: entries go out as long as its door keeps up, and are final when the door says that its client took them.

Only the engine's event loop touches it. Nothing waits here: what wakes it is new work, an acknowledgment or room in the socket.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, cast

import msgspec

from tidings.delivery.push.engine import Engine
from tidings.delivery.push.lane.entries import Item, Parcel
from tidings.delivery.push.lane.push_lane import Job, PushLane
from tidings.delivery.sse.replay import Replay
from tidings.delivery.sse.socket_protocol import (
    BEGUN,
    LONGEST_WISH,
    StreamEnd,
    StreamOptions,
    Unpacker,
    ending_message,
    entry_message,
    wish_in,
)
from tidings.log.position import Position, at_or_before

logger = logging.getLogger("tidings.delivery")

UNTAKEN = 1024
UNTAKEN_BYTES = 256 << 10
"""What may be on its way to one reader, or unread in its machine."""

ALWAYS = 2
"""So many entries may be on their way however large they are: the first is certain when the second has arrived."""

AT_ONCE = 32
"""Entries sent in one go; then the event loop gets to see what else there is."""

LOOK_AGAIN = 1.0

HANDOVER = 1.0
"""Seconds in which a stream that is to end may finish."""


class Sent(NamedTuple):
    """An entry on its way, its size, and when it left (monotonic seconds). `job` None: it was final already, and is sent once more
    only because this stream asked.
    """

    job: Job | None
    size: int
    at: float


class StreamConnection(asyncio.Protocol):
    """A door's connection. `begin` is asked for the lane when the wish is known: it ends the stream or attaches it."""

    def __init__(
        self, engine: Engine, begin: Callable[[StreamConnection, StreamOptions], None], left: Callable[[StreamConnection], None]
    ):
        self._engine = engine
        self._begin = begin
        self._left = left
        self.lane: PushLane | None = None
        self._unpacker = Unpacker()
        self._transport: asyncio.Transport | None = None
        self._lane: PushLane | None = None
        self._replay: Replay | None = None
        self._sent: deque[Sent] = deque()
        self._untaken_bytes = 0
        self._remaining = -1
        self._seen: Position | None = None
        self._paused = False
        self._planned = False
        self._loop = asyncio.get_running_loop()

    # ---- the connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are none by name.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._lane is not None:
            self._taken(len(data))
            return
        for message in self._unpacker.messages(data):
            try:
                wish = wish_in(message)
            except msgspec.MsgspecError as error:
                logger.warning("a stream was asked for in a way that cannot be read: %s", error)
                self.close()
                return
            self._begin(self, wish)
            self._taken(len(self._unpacker.rest()))
            return
        if self._unpacker.waiting > LONGEST_WISH:
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._detach()
        self._left(self)

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        self.wake()

    # ---- the lane

    def attach(self, lane: PushLane, replay: Replay | None, wish: StreamOptions) -> None:
        """Send the lane's entries from now on, as many as are wished for; first what is asked for once more."""
        self._lane, self._replay, self._remaining = lane, replay, wish.number or -1
        # What waited behind a breaker is older than what may have been read meanwhile.
        self._seen = wish.seen if len(lane.state.windows) == 1 else None
        self.lane = lane
        lane.listener = self
        if self._transport is not None:
            self._transport.write(BEGUN)
        self.wake()

    def end(self, ending: StreamEnd) -> None:
        """Tell the door why, and end."""
        if self._transport is not None:
            self._transport.write(ending_message(ending))
        self.close()

    def finish(self, ending: StreamEnd) -> None:
        """Send no more and tell the door why. It has a moment to say what its client took, and to close."""
        self._remaining = 0
        if self._transport is not None:
            self._transport.write(ending_message(ending))
        self._loop.call_later(HANDOVER, self.abort)

    def abort(self) -> None:
        """End at once, whatever is still on its way. Safe to call twice."""
        if self._transport is not None:
            self._transport.abort()

    def leave(self) -> None:
        """The lane is gone, or streamed no more."""
        self.finish(StreamEnd.GONE)

    def close(self) -> None:
        """End without a word: the door may come again."""
        self._detach()
        if self._transport is not None:
            self._transport.close()

    def wake(self) -> None:
        """Look for something to send, soon."""
        if not self._planned and self._lane is not None:
            self._planned = True
            self._loop.call_soon(self._pump)

    def _detach(self) -> None:
        """What was not taken is open again, in its order."""
        lane, self._lane = self._lane, None
        if lane is None:
            return
        if lane.listener is self:
            lane.listener = None
        for job in (sent.job for sent in self._sent):
            if job is not None:
                lane.state.put_back(job.items[0])
        self._sent.clear()
        self._engine.judge(lane)

    # ---- entries

    def _pump(self) -> None:
        self._planned = False
        for _ in range(AT_ONCE):
            if not self._may_send() or not self._send_next():
                return
        self.wake()

    def _may_send(self) -> bool:
        if self._lane is None or self._paused or self._remaining == 0 or not self._lane.streaming:
            return False
        if self._engine.holding:
            self._loop.call_later(LOOK_AGAIN, self.wake)
            return False
        return len(self._sent) < ALWAYS or (len(self._sent) < UNTAKEN and self._untaken_bytes < UNTAKEN_BYTES)

    def _send_next(self) -> bool:
        assert self._lane is not None and self._transport is not None
        found = self._next(self._lane)
        if found is None:
            return False
        item, parcel = found
        policy = self._lane.policy
        job = Job(self._lane, (item,), parcel, policy) if item is not None and policy is not None else None
        if job is not None and self._was_seen(job.items[0]):
            self._engine.streamed(job, 0.0)
            return True
        self._sent.append(Sent(job, len(parcel.body), self._loop.time()))
        self._untaken_bytes += len(parcel.body)
        self._remaining -= 1
        delivery_id = parcel.headers["tidings-delivery-id"]
        self._transport.write(entry_message(delivery_id, parcel.position, parcel.published, parcel.body))
        return True

    def _was_seen(self, item: Item) -> bool:
        """Whether the client has said that it has this entry. What was asked for once more, or failed before, is sent."""
        return self._seen is not None and at_or_before(item.position, self._seen) and not item.again and not item.tries

    def _next(self, lane: PushLane) -> tuple[Item | None, Parcel] | None:
        """The next entry, with its item if it is open; that is being sent then. None: there is nothing now."""
        if self._replay is not None:
            again = self._replay.next()
            if again is not None:
                return again
            if not self._replay.over:
                self._replay.read(self.wake)
                return None
            self._replay = None
        items = self._engine.pick(lane)
        if items is None or items[0].parcel is None:
            return None
        return items[0], items[0].parcel

    def _taken(self, count: int) -> None:
        """The client took the next entries."""
        if self._lane is None:
            return
        for _ in range(min(count, len(self._sent))):
            job, size, at = self._sent.popleft()
            self._untaken_bytes -= size
            if job is not None:
                self._engine.streamed(job, self._loop.time() - at)
        self.wake()
