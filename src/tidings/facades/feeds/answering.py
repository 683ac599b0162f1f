"""Writing the answer: NDJSON in slices, a checkpoint after each, the connection cut where something fails in the middle."""

from __future__ import annotations

import asyncio
import logging
from http import HTTPStatus

from tidings.delivery.feeds.layout import end_of
from tidings.delivery.feeds.lines import finished
from tidings.delivery.feeds.pages import Found, Page
from tidings.facades.feeds.asking import Asked
from tidings.facades.feeds.finding import layout_now
from tidings.facades.parts import Parts
from tidings.ingest.asgi import Scope, Send
from tidings.ingest.protocol import CYCLE, cut

HEADERS = [(b"content-type", b"application/x-ndjson"), (b"cache-control", b"no-store")]

logger = logging.getLogger("tidings.feeds")


class Answer:
    """One answer on its way. Nothing is sent before the first slice was read, so that a failure until then has a status."""

    def __init__(self, parts: Parts, asked: Asked, scope: Scope, send: Send) -> None:
        self._parts = parts
        self._asked = asked
        self._cycle = scope.get(CYCLE)
        self._send = send
        self._began = False
        self._page = Page(asked.feed.source, asked.count, asked.places, asked.wish)

    async def run(self, turns: asyncio.Lock) -> None:
        """Send the whole answer."""
        try:
            while not self._page.over:
                async with turns:
                    lines = self._slice()
                if lines and not self._page.over:
                    await self._write(lines)
                    # Publishing and other readers come in between.
                    await asyncio.sleep(0)
                elif lines:
                    await self._end(lines)
                    return
            await self._end([])
        except Exception:
            if not self._began:
                raise
            logger.exception("reading the feed %s failed in the middle", self._asked.feed.label)
            cut(self._cycle)

    def _slice(self) -> list[bytes]:
        """The lines of the next slice, with the checkpoints of the partitions it moved."""
        page, asked = self._page, self._asked
        found = self._in_force(page.next())
        lines = [asked.event(place.partition, row) for place, row in found]
        if not page.over:
            moved = {id(place): place for place, _ in found}
            lines += [asked.checkpoint(place.partition, place.position) for place in moved.values()]
        return lines

    def _in_force(self, found: Found) -> Found:
        """Without what belongs to a newer layout: a reader of v2 gets that from the new partitions (FAPI-26)."""
        topic = self._asked.feed.topic
        if self._asked.version == "v1" or topic is None:
            return found
        now = layout_now(self._parts, topic.name, topic)
        ended = None if now is None else end_of(self._asked.feed.layout, now)
        return found if ended is None else self._page.ended(found, ended)

    async def _begin(self) -> None:
        if not self._began:
            self._began = True
            await self._send({"type": "http.response.start", "status": HTTPStatus.OK, "headers": list(HEADERS)})

    async def _write(self, lines: list[bytes], more: bool = True) -> None:
        await self._begin()
        body, long = finished(lines)
        if long:
            self._note_long(long)
        await self._send({"type": "http.response.body", "body": body, "more_body": more})

    async def _end(self, lines: list[bytes]) -> None:
        asked = self._asked
        await self._write(lines + [asked.checkpoint(place.partition, place.position) for place in asked.places], more=False)

    def _note_long(self, lines: int) -> None:
        label = self._asked.feed.label
        logger.warning("%d lines of the feed %s are longer than some readers take (65,535 bytes)", lines, label)
        self._parts.board.count("tidings_feed_long_lines_total", lines, topic=label)
