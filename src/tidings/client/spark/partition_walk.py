"""Walking through one partition from a cursor to its present end, whatever happens to the server or its partitions meanwhile."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

from tidings.client.feeds.client import FeedClient
from tidings.client.feeds.discovery import Discovery
from tidings.client.feeds.lines import FeedEvent
from tidings.client.feeds.page import AnswerPage, without_cursor
from tidings.client.spark.offsets import Portion, name_of
from tidings.client.spark.options import Options
from tidings.errors import FeedUnreadable, HubUnreachable, TokenStale

_BATCH = 1000

Events = tuple[FeedEvent, ...]


async def walk(client: FeedClient, options: Options, partition: str, cursor: str) -> AsyncGenerator[Events, None]:
    """The events after the cursor, each time up to a checkpoint. When the partition was redistributed, those of its heirs."""
    known = await _patiently(client, options)
    places, lost, tries = moved({partition: cursor}, known), time.monotonic(), 0
    while places:
        for id in list(places):
            page = AnswerPage({id: places[id]})
            try:
                async with aclosing(client.pages(known, {id: places[id]}, options.wishes)) as chunks:
                    async for chunk in chunks:
                        for batch in page.take(chunk, _BATCH):
                            places[id] = batch.cursor
                            yield client.wanted(batch.events)
                for batch in page.rest():
                    places[id] = batch.cursor
                    yield client.wanted(batch.events)
            except TokenStale:
                await asyncio.sleep(options.backoff.plain(tries))
                known, tries = await _patiently(client, options), tries + 1
                places = moved(places, known)
                break
            except HubUnreachable as error:
                for batch in page.rest():
                    places[id] = batch.cursor
                    yield client.wanted(batch.events)
                if time.monotonic() - lost > options.patience:
                    raise
                await asyncio.sleep(options.backoff.jittered(tries, random.random(), error.retry_after))
                tries += 1
                continue
            if page.has_lost_events:
                raise without_cursor()
            lost, tries = time.monotonic(), 0
            if page.is_at_the_end or page.is_silent:
                del places[id]


async def replay(client: FeedClient, options: Options, portion: Portion) -> AsyncGenerator[Events, None]:
    """Exactly the events of a portion, in their order, however the server mixes them with later ones this time."""
    missing = Counter(portion.each())
    async with aclosing(walk(client, options, portion.partition, portion.cursor)) as events:
        async for some in events:
            taken = tuple(event for event in some if _takes(missing, name_of(event)))
            if taken:
                yield taken
            if not missing:
                return
    raise FeedUnreadable(
        f"{missing.total()} events that the feed showed before are not there any more",
        at=f"partition {portion.partition} after {portion.cursor}",
    )


def _takes(missing: Counter[bytes], name: bytes) -> bool:
    left = missing.get(name, 0)
    if not left:
        return False
    if left == 1:
        del missing[name]
    else:
        missing[name] = left - 1
    return True


def moved(places: Mapping[str, str], known: Discovery) -> dict[str, str]:
    """The same places among the partitions of now: a cursor of a partition that is gone is valid on each of its heirs."""
    found: dict[str, str] = {}
    for id, cursor in places.items():
        heirs = [id] if known.get(id) is not None else [one.id for one in known.partitions if id in one.cursors_of]
        if not heirs:
            raise FeedUnreadable("a partition is gone and nobody goes on with its cursors", at=f"partition {id}")
        found |= dict.fromkeys(heirs, cursor)
    return found


async def _patiently(client: FeedClient, options: Options) -> Discovery:
    until, tries = time.monotonic() + options.patience, 0
    while True:
        try:
            return await client.discover()
        except HubUnreachable as error:
            if time.monotonic() > until:
                raise
            await asyncio.sleep(options.backoff.jittered(tries, random.random(), error.retry_after))
            tries += 1
