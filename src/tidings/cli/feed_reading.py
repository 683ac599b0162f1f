"""What `tidings feed read` and `forward` do with the events they get."""

from __future__ import annotations

import asyncio
import json
import select
import sys
import time
from collections.abc import Iterator
from typing import Any

from tidings.cli.events import BATCH_TYPE, Line, batches
from tidings.client.feeds import Batch, Event, FeedClient, Handler
from tidings.client.feeds.run import all_of
from tidings.client.http import HubClient, segment
from tidings.errors import HubProblem, HubUnreachable
from tidings.ids import random_id

_GLANCE = 0.3
_HEADER = "ce_"
_NAMED = ("id", "source", "type")


def run(client: FeedClient, take: Handler, follow: bool, out: int | None = None) -> None:
    """Read until the end, or for ever. Nobody there is an error at once; a server that goes away later is waited for.

    `out`: where lines are printed; when nobody reads them any more, there is nothing to wait for.
    """

    async def go() -> None:
        async with client:
            await client.discover()
            reading = client.run(take, follow=follow)
            await (reading if out is None else all_of([reading, _until_unread(out)]))

    asyncio.run(go())


async def _until_unread(out: int) -> None:
    """Raises BrokenPipeError once nobody reads, as after `| head`. Writing would find out only with the next event."""
    watched = select.poll()
    watched.register(out, 0)
    while True:
        if watched.poll(0):
            raise BrokenPipeError
        await asyncio.sleep(_GLANCE)


class Printer:
    """Prints every event as it came, one a line; counts on stderr while nobody sees the lines themselves."""

    def __init__(self) -> None:
        self._out = sys.stdout.buffer
        self._counts = sys.stderr.isatty() and not sys.stdout.isatty()
        self._seen, self._shown = 0, 0.0

    def __call__(self, tx: Any, batch: Batch) -> None:
        self._out.write(b"".join(b"%b\n" % event.raw for event in batch))
        self._out.flush()
        self._seen += len(batch)
        if self._counts and time.monotonic() - self._shown > 0.2:
            self._shown = time.monotonic()
            print(f"\r{self._seen:,} events", end="", file=sys.stderr, flush=True)


class Forwarder:
    """Publishes every event to a topic. `patient`: a hub that is away is tried again, so that an event may arrive twice."""

    def __init__(self, hub: HubClient, topic: str, feed: str, *, patient: bool) -> None:
        self._hub, self._topic, self._feed, self._patient = hub, topic, feed, patient
        self.accepted = 0

    async def __call__(self, tx: Any, batch: Batch) -> None:
        lines = (Line(n, as_cloudevent(event, self._topic, self._feed)) for n, event in enumerate(batch, 1))
        for request in batches(lines):
            await self._send(request.body, batch)
            self.accepted += len(request.lines)

    async def _send(self, body: bytes, batch: Batch) -> None:
        for wait in _waits():
            try:
                self._hub.send("POST", f"/api/topics/{segment(self._topic)}/events", body, content_type=BATCH_TYPE)
                return
            except HubUnreachable:
                if not self._patient:
                    raise
                await asyncio.sleep(wait)
            except HubProblem as error:
                place = f"before cursor {batch.cursor} of partition {batch.partition}"
                raise HubProblem(f"an event {place} was refused: {error}", error.problem) from error


def _waits() -> Iterator[float]:
    wait = 1.0
    while True:
        yield wait
        wait = min(60.0, wait * 2)


def as_cloudevent(event: Event, topic: str, feed: str) -> bytes:
    """A CloudEvent as it is. Any other payload becomes the data of one, byte for byte, with what its headers tell.

    Without a key of its own it gets the partition as its key: what was in order stays in order.
    """
    if event.raw.startswith(b"{") and isinstance(event.data, dict) and all(isinstance(event.data.get(n), str) for n in _NAMED):
        return event.raw
    headers = {name.lower(): str(value) for name, value in (event.headers or {}).items()}
    told = {name.removeprefix(_HEADER): value for name, value in headers.items() if name.startswith(_HEADER)}
    others = {name: value for name, value in headers.items() if name.isascii() and name.isalnum()}
    is_text = event.raw.startswith(b'"')
    head = {
        "id": random_id(),
        "source": feed,
        "type": topic.rpartition(":")[2],
        "datacontenttype": headers.get("content-type", "text/plain" if is_text else "application/json"),
        "partitionkey": told.get("subject") or f"{feed}#{event.partition}",
        **others,
        **told,
        "specversion": "1.0",
    }
    return b'%b,"data":%b}' % (json.dumps(head)[:-1].encode(), event.raw)
