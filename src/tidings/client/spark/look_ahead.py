"""The planner's look ahead: it reads pages itself, names the events of the next batch, and forgets their contents.

A feed tells its end only to who reads it, so one side has to read before the batch is made. Executors then read the same range
again, each its partition.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass

from tidings.client.feeds.client import FeedClient
from tidings.client.feeds.discovery import Discovery
from tidings.client.feeds.page import AnswerPage, without_cursor
from tidings.client.feeds.reader import all_of
from tidings.client.feeds.start_plan import PartitionStart, plan
from tidings.client.feeds.store import StoredCursor
from tidings.client.spark.offsets import Offset, Portion, kept_in, name_of, offset_of
from tidings.client.spark.options import Options
from tidings.errors import HubUnreachable, TokenStale

REDISCOVERIES = 5
"""How often in a row the partitions may have changed before that counts as trouble of the server."""


@dataclass(slots=True)
class Sighting:
    """One partition, seen from `portion.cursor` up to `cursor`."""

    place: PartitionStart
    cursor: str
    names: bytearray
    at_the_end: bool = False

    @property
    def row(self) -> StoredCursor:
        return StoredCursor(self.cursor, finished=self.place.partition.closed and self.at_the_end)

    @property
    def portion(self) -> Portion:
        return Portion(self.place.partition.id, self.place.cursor, bytes(self.names))


class Ahead:
    """Looks ahead in one feed."""

    def __init__(self, client: FeedClient, options: Options) -> None:
        self._client, self._options = client, options
        self._known: Discovery | None = None
        self._ended: set[str] | None = None

    def once(self) -> None:
        """From now on, a partition that was seen to its end is not looked at again: the query is to end some time."""
        self._ended = set()

    async def next_offset(self, start: Offset, limit: int | None) -> Offset:
        """Where a batch of about `limit` events after `start` ends; `start` itself when there is nothing new.

        Raises HubUnreachable, and what else a feed may refuse.
        """
        for tries in range(REDISCOVERIES):
            known = self._known or await self._client.discover()
            self._known = known
            try:
                return await self._look(known, start, limit)
            except TokenStale:
                # What the old partitions were seen to have is thrown away: the new ones are planned from the same start.
                self._known = None
                await asyncio.sleep(self._options.backoff.plain(tries))
        # Not `start`: that would mean that there is nothing new, and a query that reads what is there would end.
        raise HubUnreachable(f"the partitions of {self._options.url} change all the time")

    async def _look(self, known: Discovery, start: Offset, limit: int | None) -> Offset:
        kept = kept_in(start)
        planned = plan(known, kept, self._options.start, ordered=self._options.ordered)
        # A partition that follows another one waits for the next batch: rows of one batch have no order among partitions.
        ended = self._ended or ()
        places = [place for place in planned.places if place.after is None and place.partition.id not in ended]
        share = None if limit is None else max(1, -(-limit // max(1, len(places))))
        seen = [Sighting(place, place.cursor, bytearray()) for place in places]
        await all_of([self._see(known, one, share) for one in seen])
        if self._ended is not None:
            self._ended |= {one.place.partition.id for one in seen if one.at_the_end}
        rows = {**kept, **planned.saves, **{one.place.partition.id: one.row for one in seen if _is_news(one)}}
        return start if rows == kept else offset_of(rows, [one.portion for one in seen])

    async def _see(self, known: Discovery, sight: Sighting, share: int | None) -> None:
        id, count = sight.place.partition.id, 0
        while not sight.at_the_end and (share is None or count < share):
            page = AnswerPage({id: sight.cursor})
            async with aclosing(self._client.pages(known, {id: sight.cursor}, self._options.wishes)) as chunks:
                async for chunk in chunks:
                    for batch in (*page.take(chunk, 1), *page.rest()):
                        if share is None or count < share:
                            names = [name_of(event) for event in self._client.wanted(batch.events)]
                            sight.names += b"".join(names)
                            sight.cursor, count = batch.cursor, count + len(batch.events)
            if page.has_lost_events:
                raise without_cursor()
            sight.at_the_end = page.is_at_the_end or page.is_silent


def _is_news(sight: Sighting) -> bool:
    return sight.cursor != sight.place.cursor or sight.row.finished
