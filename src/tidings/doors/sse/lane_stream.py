"""A lane's stream as a door reads it: entries in order, until it ends. A new owner takes over without the client noticing."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

import msgspec

from tidings.delivery.push.lane_owner import owner_of
from tidings.delivery.sse.socket_protocol import StreamEnd, StreamEntry, StreamOptions, socket_path
from tidings.doors.api_parts import ApiParts
from tidings.doors.sse.owner_connection import OwnerConnection
from tidings.errors import Conflict, NotFound, NotReady, Overloaded
from tidings.log.position import LaneNumber, Position

PATIENCE = 10.0
PAUSE = 0.05
FINISH = 1.0
REMEMBERED = 4096
"""Entries that were written last. An owner that died may not know of them; the client is not given them again."""


class StreamOver(NamedTuple):
    """Why nothing more comes. `ending` None: the hub stops, or the owner stays away."""

    ending: StreamEnd | None


class LaneStream:
    """An open stream. One task reads it: look at `arrived`, write all of it; say `taken` of what the client surely has.

    When there is nothing, `wait`.
    """

    def __init__(self, parts: ApiParts, wish: StreamOptions) -> None:
        self._parts = parts
        self._wish = wish
        self._event = asyncio.Event()
        self._owner: OwnerConnection | None = None
        self._lost_at: float | None = None
        # What this owner sent and was not told of, in its order; and what no client surely has yet, whoever sent it.
        self._owed: deque[Position] = deque()
        self._uncertain: set[Position] = set()
        self._recent: deque[Position] = deque(maxlen=REMEMBERED)
        self._repeated: set[Position] = set()
        self._last: Position | None = wish.after
        self._given_up = False

    @property
    def over(self) -> StreamOver | None:
        """Why nothing more comes, once everything that came was looked at."""
        owner = self._owner
        if self._parts.waiting.over or self._given_up:
            return StreamOver(None)
        ended = owner is not None and owner.ending is not None and not owner.arrived
        return StreamOver(owner.ending) if owner is not None and ended else None

    async def connect(self) -> None:
        """Find the owner and wait until the lane is ours, or nothing will come. Raises NotReady when it stays away."""
        deadline = self._parts.clock.monotonic() + PATIENCE
        while not self._begun() and self.over is None:
            left = deadline - self._parts.clock.monotonic()
            if left < 0:
                raise NotReady("the process that delivers does not answer", expected="try again in a moment")
            if not self.lost:
                await self.wait(left)
            elif not await self._connected():
                await asyncio.sleep(PAUSE)

    def arrived(self) -> list[StreamEntry]:
        """What came since the last call and has to be written."""
        owner = self._owner
        if owner is None:
            return []
        found = []
        while owner.arrived:
            entry = owner.arrived.popleft()
            self._owed.append(entry.position)
            if entry.position in self._repeated:
                self._repeated.discard(entry.position)
                continue
            self._repeated.clear()
            self._uncertain.add(entry.position)
            self._recent.append(entry.position)
            self._last = entry.position
            found.append(entry)
        self._tell()
        return found

    def taken(self, positions: Iterable[Position]) -> None:
        """The client surely has these."""
        self._uncertain.difference_update(positions)
        self._tell()

    def _tell(self) -> None:
        """Tell the owner what was taken, in the order in which it sent."""
        count = 0
        while self._owed and self._owed[0] not in self._uncertain:
            self._owed.popleft()
            count += 1
        if count and self._owner is not None:
            self._owner.taken(count)

    async def wait(self, seconds: float) -> None:
        """Until something may have happened, for so many seconds at the most."""
        if self.over is not None or (self._owner is not None and self._owner.arrived):
            return
        if self.lost:
            await self._find_again(seconds)
            return
        await self.rest(seconds)

    async def rest(self, seconds: float) -> None:
        """Until something has happened, for so many seconds at the most."""
        self._event.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(None if math.isinf(seconds) else max(0.0, seconds)):
                await self._event.wait()

    async def finish(self) -> None:
        """Read no more. The owner knows of everything that was taken when this returns, if it is well."""
        owner, ends = self._owner, self._parts.clock.monotonic() + FINISH
        if owner is None:
            return
        owner.finish()
        while not owner.lost and (left := ends - self._parts.clock.monotonic()) > 0:
            await self.rest(left)

    def alert(self) -> None:
        """Something has happened: whoever waits looks again."""
        self._event.set()

    def close(self) -> None:
        """Give the lane back."""
        if self._owner is not None:
            self._owner.close()
            self._owner = None

    def _begun(self) -> bool:
        return self._owner is not None and self._owner.begun

    @property
    def lost(self) -> bool:
        """Whether the owner went away without a word."""
        return self._owner is None or (self._owner.lost and self._owner.ending is None)

    async def _find_again(self, seconds: float) -> None:
        """The owner went away without a word: it may be back in a moment."""
        now = self._parts.clock.monotonic()
        self._lost_at = self._lost_at or now
        if now - self._lost_at > PATIENCE:
            self._given_up = True
            return
        # What was written may come again; what of it was taken is told once more.
        self._owed.clear()
        self._repeated = set(self._recent)
        after = None if self._wish.after is None else self._last
        self._wish = msgspec.structs.replace(self._wish, after=after, number=0)
        if await self._connected():
            self._lost_at = None
        else:
            await asyncio.sleep(min(PAUSE, max(0.0, seconds)))

    async def _connected(self) -> bool:
        settings = self._parts.settings
        path = socket_path(settings.data, owner_of(self._wish.lane, settings.deliver.workers))
        loop = asyncio.get_running_loop()
        try:
            _, self._owner = await loop.create_unix_connection(lambda: OwnerConnection(self._wish, self.alert), str(path))
        except OSError:
            return False
        return True


@asynccontextmanager
async def open_stream(
    parts: ApiParts, lane: LaneNumber, after: Position | None = None, number: int = 0
) -> AsyncIterator[LaneStream]:
    """The lane's stream; one that is open already ends. Raises NotReady when the lane's owner stays away, or a refusal."""
    stream = LaneStream(parts, StreamOptions(lane, after, number, seen=after))
    parts.waiting.tell(stream.alert)
    try:
        await stream.connect()
        if stream.over is not None:
            refuse(stream.over)
        yield stream
    finally:
        parts.waiting.spare(stream.alert)
        stream.close()


async def terminate(parts: ApiParts, lane: LaneNumber) -> None:
    """End the lane's stream, if there is one. Raises NotReady, NotFound or Conflict."""
    stream = LaneStream(parts, StreamOptions(lane, terminate=True))
    try:
        await stream.connect()
        while (over := stream.over) is None:
            await stream.wait(PATIENCE)
    finally:
        stream.close()
    refuse(over)


def refuse(over: StreamOver) -> None:
    """Raise what a stream that ended before anything was sent means to its client, if it is a refusal."""
    match over.ending:
        case StreamEnd.GONE:
            raise NotFound("there is no such subscription any more")
        case StreamEnd.NOT_STREAMED:
            raise Conflict("this subscription is not streamed", expected="a subscription with delivery.kind sse")
        case StreamEnd.BARRED:
            raise Conflict("this subscription may not be given events now", expected="an approval")
        case StreamEnd.STOPPED:
            raise Conflict("this subscription is suspended or disabled", expected="one that is active")
        case StreamEnd.TOO_MANY:
            raise Overloaded("as many streams are open as sse.max_streams allows")
        case _:
            return
