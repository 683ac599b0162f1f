"""What `tidings feed read` and `forward` do with the events they get."""

from __future__ import annotations

import asyncio
import json
import select
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any
from urllib.parse import urlsplit

from tidings.cli.events import BATCH_TYPE, Line, batches
from tidings.cli.terminal.output import print_error
from tidings.client.feeds import LAST, Batch, FeedClient, FeedEvent, Handler
from tidings.client.feeds.reader import all_of
from tidings.client.feeds.requests import RESUME
from tidings.client.http import HubClient, is_about_events, is_passing, segment
from tidings.errors import HubProblem, HubUnreachable, shortened

_GLANCE = 0.3
_HEADER = "ce_"
_NAMED = ("id", "source", "type")


def run(client: FeedClient, take: Handler, follow: bool, out: int | None = None, *, start: str | None = None) -> None:
    """Read until the end, or for ever. Nobody there is an error at once; a server that goes away later is waited for.

    `out`: where lines are printed; when nobody reads them any more, there is nothing to wait for. `start`: what was asked for.
    """

    async def go() -> None:
        async with client:
            known = await client.discover()
            if start is not None and sys.stderr.isatty() and client.store.load(client.feed_name(known)):
                print_error("cursors of this feed are kept already, so --from does not count; --name NAME begins anew")
            reading = client.run(take, follow=follow)
            await (reading if out is None else all_of([reading, _until_unread(out)]))

    asyncio.run(go())


async def _until_unread(out: int) -> None:
    """Raises BrokenPipeError once nobody reads, as after `| head`. A write would notice only at the next event."""
    watched = select.poll()
    watched.register(out, 0)
    while True:
        if watched.poll(0):
            raise BrokenPipeError
        await asyncio.sleep(_GLANCE)


class Printer:
    """Prints every event as it came, one per line; counts on stderr when only that is a terminal."""

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
    """Publishes every event to a topic. `patient`: a hub that is away is tried again, so that an event may arrive twice.

    A request with an event that the topic refuses is sent again event by event: what comes before that event gets
    there, and its name is told. It ends the forwarding, unless `skip_refused`.
    """

    def __init__(self, hub: HubClient, topic: str, client: FeedClient, *, patient: bool, skip_refused: bool = False) -> None:
        self._hub, self._topic, self._patient, self._skips = hub, topic, patient, skip_refused
        self._feed, self._source = client.name, source_of(client.url)
        self.accepted, self.skipped = 0, 0

    async def __call__(self, tx: Any, batch: Batch) -> None:
        named = zip(batch, event_ids(batch, self._feed), strict=True)
        lines = (Line(n, as_cloudevent(event, self._topic, self._source, id)) for n, (event, id) in enumerate(named, 1))
        for request in batches(lines):
            try:
                await self._send(request.body)
                self.accepted += len(request.lines)
            except HubProblem as error:
                if not is_about_events(error):
                    raise
                for line in request.lines:
                    await self._send_one(line.event, batch)

    async def _send_one(self, event: bytes, batch: Batch) -> None:
        try:
            await self._send(b"[%b]" % event)
            self.accepted += 1
        except HubProblem as error:
            if not is_about_events(error):
                raise
            name = f"{_name(event)}, before cursor {batch.cursor} of partition {batch.partition},"
            if not self._skips:
                raise HubProblem(
                    f"the event {name} was refused: {error.what}; --skip-refused goes on without it",
                    {**error.problem, "errors": []},
                ) from error
            self.skipped += 1
            print_error(f"the event {name} was refused and is skipped: {error.what}")

    async def _send(self, body: bytes) -> None:
        for wait in _waits():
            try:
                self._hub.send("POST", f"/api/topics/{segment(self._topic)}/events", body, content_type=BATCH_TYPE)
                return
            except (HubUnreachable, HubProblem) as error:
                if not self._patient or (isinstance(error, HubProblem) and not is_passing(error)):
                    raise
                await asyncio.sleep(wait)


def _name(event: bytes) -> str:
    head = json.loads(event)
    return f"{shortened(head.get('id'))} of {shortened(head.get('source'))}"


def _waits() -> Iterator[float]:
    wait = 1.0
    while True:
        yield wait
        wait = min(60.0, wait * 2)


def source_of(url: str) -> str:
    """The address of a feed as a source: without credentials and query, which may hold a secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def event_ids(batch: Batch, feed: str) -> Iterator[str]:
    """An id for each event that has none: the same whenever the feed is read from the same cursor, and never of two events.

    It is made of the checkpoint before the event, its payload, and how many of the same payload came between the two.
    """
    anchors = dict(batch.checkpoints)
    # What began at "the end", or where the publisher knows, has no place to tell before its first checkpoint.
    anchor = batch.since if batch.since not in (LAST, RESUME) else f"before {batch.checkpoints[0][1]}"
    seen: Counter[bytes] = Counter()
    for n, event in enumerate(batch):
        if n in anchors:
            anchor, seen = anchors[n], Counter()
        place = json.dumps([feed, event.partition, anchor, seen[event.raw]]).encode()
        seen[event.raw] += 1
        yield blake2b(b"%b\n%b" % (place, event.raw), digest_size=16).hexdigest()


def as_cloudevent(event: FeedEvent, topic: str, source: str, event_id: str) -> bytes:
    """A CloudEvent as it is. Any other payload becomes the data of one, byte for byte, with what its headers tell.

    Without a key of its own it gets the partition as its key: what was in order stays in order.
    """
    if event.raw.startswith(b"{") and isinstance(event.data, dict) and all(isinstance(event.data.get(n), str) for n in _NAMED):
        return event.raw
    headers = {name.lower(): str(value) for name, value in (event.headers or {}).items()}
    told = {name.removeprefix(_HEADER): value for name, value in headers.items() if name.startswith(_HEADER)}
    is_text = event.raw.startswith(b'"')
    head = {
        "id": event_id,
        "source": source,
        "type": topic.rpartition(":")[2],
        "datacontenttype": headers.get("content-type", "text/plain" if is_text else "application/json"),
        "partitionkey": told.get("subject") or f"{source}#{event.partition}",
        **_attributes(headers),
        **_attributes(told),
        "specversion": "1.0",
    }
    return b'%b,"data":%b}' % (json.dumps(head)[:-1].encode(), event.raw)


def _attributes(headers: Mapping[str, str]) -> dict[str, str]:
    """What can be an attribute of a CloudEvent beside its data."""
    return {name: value for name, value in headers.items() if name.isascii() and name.isalnum() and name != "data" and value}
