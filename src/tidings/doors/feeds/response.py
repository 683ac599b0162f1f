"""Writing the answer: NDJSON in slices, a checkpoint after each, the connection cut where something fails in the middle."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping
from http import HTTPStatus

from tidings.access.principals import Principal
from tidings.delivery.feeds.lines import finished
from tidings.delivery.feeds.pages import FeedPage, Found, next_at_once, next_events
from tidings.delivery.feeds.partitions import end_of
from tidings.doors.api_parts import ApiParts
from tidings.doors.feeds.feed_lookup import stands
from tidings.doors.feeds.request import FeedRequest
from tidings.doors.feeds.wait_seats import NO_SEAT, Waits
from tidings.log.position import Offset
from tidings.registry.model import Snapshot
from tidings.server.asgi import Scope, Send
from tidings.server.http_protocol import CYCLE, cut, end_at_once

HEADERS = [(b"content-type", b"application/x-ndjson"), (b"cache-control", b"no-store")]
KEEP_ALIVE = 10.0
"""Seconds without output after which an empty line tells that the hub is still there."""

PASSING = 4
"""Milliseconds that reading waits at the most before a slice, while something is being published."""

logger = logging.getLogger("tidings.feeds")


class FeedResponse:
    """One answer on its way. Nothing is sent before the first slice was read, so that a failure until then has a status."""

    def __init__(self, parts: ApiParts, asked: FeedRequest, by: Principal, scope: Scope, send: Send) -> None:
        self._parts = parts
        self._asked = asked
        self._by = by
        self._seat = NO_SEAT
        self._snapshot: Snapshot | None = None
        self._cycle = scope.get(CYCLE)
        self._send = send
        self._began = self._answered = False
        self._woken: bytes | None = None
        self._counts: Counter[int] = Counter()
        self._told = parts.clock.monotonic()
        self._page = FeedPage(asked.count, asked.places, asked.wish)

    @property
    def served(self) -> int:
        """Events that were sent."""
        return self._page.served

    def counts(self) -> Mapping[int, int]:
        """The same by partition."""
        return self._counts

    async def run(self, turns: asyncio.Lock, waits: Waits) -> None:
        """Send the whole answer: what is there, or with `wait` what comes."""
        try:
            await self._run(turns, waits)
        except Exception:
            if not self._began:
                raise
            logger.exception("reading the feed %s failed in the middle", self._asked.feed.label)
            cut(self._cycle)

    async def store_only(self) -> None:
        """Send nothing but the cursors that came (FEED-36)."""
        await self._end(b"")

    async def _run(self, turns: asyncio.Lock, waits: Waits) -> None:
        text = await self._rest(turns, await self._turn(turns, self._asked.last))
        if self._asked.wait and not self._page.served and not self._ended():
            text = await self._seated(turns, waits, text)
        if not self._answered:
            await self._end(text)

    async def _turn(self, turns: asyncio.Lock, last: Offset | None = None) -> bytes:
        async with turns:
            await self._let_publishing_pass()
            return self._slice(await next_events(self._page, self._asked.feed.source, last))

    async def _let_publishing_pass(self) -> None:
        """A commit is made by another thread, which gets the interpreter from a busy event loop only every few milliseconds."""
        for _ in range(PASSING):
            if not self._parts.log.busy():
                return
            await asyncio.sleep(0.001)

    async def _rest(self, turns: asyncio.Lock, text: bytes) -> bytes:
        """Send this slice and those after it, but for the last one, which is returned."""
        while not self._page.over and not self._gone():
            if text:
                await self._write(text)
            elif self._parts.clock.monotonic() - self._told > KEEP_ALIVE:
                await self._write(b"\n")
            # Publishing and other readers come in between.
            await asyncio.sleep(0)
            text = await self._turn(turns)
        return text

    async def _seated(self, turns: asyncio.Lock, waits: Waits, text: bytes) -> bytes:
        """What comes while the request waits; what there is already, where its consumer waits often enough."""
        seat = waits.seat(self._by)
        if seat is None:
            return text
        self._seat = seat
        try:
            return await self._waited(turns, waits)
        finally:
            seat.release()

    async def _waited(self, turns: asyncio.Lock, waits: Waits) -> bytes:
        """Hold the request until there is an event for it, or its time is over."""
        clock = self._parts.clock
        deadline = clock.monotonic() + self._asked.wait
        await self._begin()
        while (left := deadline - clock.monotonic()) > 0:
            self._woken = None
            last = await waits.wait(self._asked, self, min(left, KEEP_ALIVE))
            if self._answered or self._parts.waiting.over or self.left():
                return self._woken or b""
            if last is None:
                # Timers may ring a moment early: then the time is not quite over, and there is nothing to say.
                if left > KEEP_ALIVE:
                    await self._write(b"\n")
                continue
            text = await self._rest(turns, await self._look(last) if self._woken is None else self._woken)
            if self._page.served or self._ended():
                return text
        # The cursor still moves past what was not meant.
        return await self._rest(turns, await self._look((await self._asked.feed.source.extent()).last))

    def answer(self, last: Offset) -> bool:
        """Called by who wakes the waiting: the whole answer in one write, where one slice is all of it; whether it was."""
        ready = self._asked.feed.ready
        if ready is None:
            return False
        self._page.again()
        self._woken = self._slice(next_at_once(self._page, ready, last))
        if self._cycle is None or not self._page.over or not self._page.served:
            return False
        self._answered = end_at_once(self._cycle, self._woken + self._closing())
        if self._answered:
            self._seat.release()
        return self._answered

    def left(self) -> bool:
        """Whether there is no reason to wait any more: the reader is gone, or its partitions have ended."""
        return self._gone() or self._ended()

    async def _look(self, last: Offset) -> bytes:
        self._page.again()
        return self._slice(await next_events(self._page, self._asked.feed.source, last))

    def _slice(self, found: Found) -> bytes:
        """The lines of a slice, with the checkpoints of the partitions it moved."""
        page, asked = self._page, self._asked
        found = self._in_force(found)
        if not found:
            return b""
        for place, rows in found:
            self._counts[place.partition] += len(rows)
        text = self._lines(found)
        if not page.over:
            moved = {id(place): place for place, _ in found}
            text += b"".join([asked.checkpoint(place.partition, place.position) for place in moved.values()])
        return text

    def _lines(self, found: Found) -> bytes:
        asked, whole = self._asked, self._page.whole
        texts = whole.texts if whole is not None else None
        key = (asked.line_key, found[0][0].partition)
        known = texts.get(key) if texts is not None else None
        if known is None:
            event, checkpoint = asked.event, asked.checkpoint
            lines = [(place.partition, row) for place, rows in found for row in rows]
            before = lambda n: checkpoint(lines[n][0], Offset(lines[n][1][0] - 1))  # noqa: E731
            known = finished([event(partition, row) for partition, row in lines], before)
            if texts is not None:
                texts[key] = known
        text, long = known
        if long:
            self._note_long(long)
        return text

    def _in_force(self, found: Found) -> Found:
        """Without what belongs to a newer layout: a reader of v2 gets that from the new partitions (FAPI-26)."""
        ended = self._layout_end()
        return found if ended is None else self._page.ended(found, ended)

    def _layout_end(self) -> Offset | None:
        topic = self._asked.feed.topic
        if self._asked.version == "v1" or topic is None:
            return None
        now = self._parts.snapshot.topics.get(topic.name)
        return None if now is None else end_of(self._asked.feed.layout, now.feed)

    def _ended(self) -> bool:
        """Whether the next request has to learn something else: another token, no feed any more, an expired cursor (FEED-41)."""
        return self._page.overtaken or self._changed()

    def _changed(self) -> bool:
        """Whether the feed is another one by now. Very cheap while nothing was changed: asked for everyone who waits."""
        snapshot = self._parts.snapshot
        if snapshot is self._snapshot:
            return False
        changed = not stands(self._parts, self._asked.feed, self._asked.version)
        self._snapshot = None if changed else snapshot
        return changed

    def _gone(self) -> bool:
        return self._cycle is not None and self._cycle.disconnected

    async def _begin(self) -> None:
        if not self._began:
            self._began = True
            await self._send({"type": "http.response.start", "status": HTTPStatus.OK, "headers": list(HEADERS)})

    async def _write(self, text: bytes, more: bool = True) -> None:
        self._told = self._parts.clock.monotonic()
        await self._begin()
        await self._send({"type": "http.response.body", "body": text, "more_body": more})

    async def _end(self, text: bytes) -> None:
        await self._write(text + self._closing(), more=False)

    def _closing(self) -> bytes:
        checkpoint = self._asked.checkpoint
        return b"".join([checkpoint(place.partition, place.position) for place in self._asked.places])

    def _note_long(self, lines: int) -> None:
        label = self._asked.feed.label
        logger.warning("%d lines of the feed %s are longer than some readers take (65,535 bytes)", lines, label)
        self._parts.board.count("tidings_feed_long_lines_total", lines, topic=label)
