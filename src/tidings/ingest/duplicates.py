"""The duplicate check by source and id (CE-05): the same again is accepted and not stored twice, other content is refused.

A claim is made when its event is durable, before it is acknowledged. Claims live in memory until they are in the table a moment
later; what a crash loses of them is read from the log again before the first event is taken. See decision 003.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, TypeVar

from tidings import config
from tidings.clock import SECOND, Clock
from tidings.config import TopicSettings
from tidings.errors import DuplicateEvent, EventFault, LogUnavailable, Malformed, NotReady, Unavailable, tolerating
from tidings.events.model import Event
from tidings.events.stored import event_from
from tidings.ingest.claims import Claim, ClaimKey, ClaimsTable, content_of, key_of, slice_of
from tidings.log.port import Draft, Limit, LogReader
from tidings.log.position import Marks, Offset, Partition, Position, TopicNumber
from tidings.registry.model import Snapshot

T = TypeVar("T")

FLUSH_AFTER = 0.2
PATIENCE = 10.0
"""Seconds that a publisher waits after a start until the check has read what it missed."""

UNSAVED_CLAIMS = 200_000
"""Claims that may wait in memory for their file; beyond that, publishing to checked topics gets 503."""


class Appender(Protocol):
    """The one method of the log that is needed here."""

    async def append(self, drafts: Sequence[Draft]) -> Sequence[Position]: ...


def window_of(setting: str) -> float | None:
    """How far back a topic's setting looks, in seconds: None for `off`, infinity for `forever`. Raises Malformed."""
    match setting:
        case "off":
            return None
        case "forever":
            return math.inf
    try:
        return float(config.seconds(setting))
    except ValueError as error:
        expected = '"off", "forever", or a window such as "24h"'
        raise Malformed("the duplicate check cannot be read", at="duplicates", found=setting, expected=expected) from error


def windows_of(snapshot: Snapshot, defaults: TopicSettings) -> dict[TopicNumber, float]:
    """How far back each topic looks that is checked at all."""
    windows = {topic.number: window_of(topic.duplicates or defaults.duplicates) for topic in snapshot.topics.values()}
    return {number: window for number, window in windows.items() if window is not None}


@dataclass(frozen=True, slots=True)
class Checked:
    """Events of one request to a topic whose duplicate check looks `window` seconds back, with their drafts."""

    topic: TopicNumber
    window: float
    events: Sequence[Event]
    drafts: Sequence[Draft]


class DuplicateCheck:
    """Appends what is new. Belongs to one event loop; concurrent requests with the same event wait for each other."""

    def __init__(self, table: ClaimsTable, log: Appender, clock: Clock) -> None:
        self._table = table
        self._log = log
        self._clock = clock
        self._thread = ThreadPoolExecutor(1, "duplicates")
        self._caught_up = asyncio.Event()
        self._inflight: dict[ClaimKey, asyncio.Future[None]] = {}
        self._recent: dict[ClaimKey, Claim] = {}
        self._flushing: Mapping[ClaimKey, Claim] = {}
        # Every append in flight began when `_acknowledged` was at its floor, so its positions lie above.
        self._floors: dict[object, Marks] = {}
        self._acknowledged: dict[Partition, Offset] = {}
        self._stirred = asyncio.Event()

    async def append(self, request: Checked) -> Sequence[Position]:
        """Append what was not published before; the positions of that. Raises DuplicateEvent (then nothing is stored)."""
        await self._ready()
        keys = [key_of(request.topic, event) for event in request.events]
        claims = self._claims(request)
        await self._others(keys)
        fresh = self._fresh(request, keys, claims)
        return await self._append(request, {keys[n]: (claims[n], request.drafts[n]) for n in fresh}) if fresh else ()

    async def _ready(self) -> None:
        if self._caught_up.is_set():
            return
        try:
            async with asyncio.timeout(PATIENCE):
                await self._caught_up.wait()
        except TimeoutError as error:
            raise NotReady("the duplicate check is still reading the log", retry_after=2) from error

    def _claims(self, request: Checked) -> Sequence[Claim]:
        pairs = zip(request.events, request.drafts, strict=True)
        return [Claim(content_of(event), draft.at, slice_of(draft.at, request.window)) for event, draft in pairs]

    async def _others(self, keys: Sequence[ClaimKey]) -> None:
        """Wait until no other request is about to store one of these."""
        while busy := [self._inflight[key] for key in keys if key in self._inflight]:
            await asyncio.wait(busy)

    def _fresh(self, request: Checked, keys: Sequence[ClaimKey], claims: Sequence[Claim]) -> Sequence[int]:
        if len(self._recent) + len(self._flushing) > UNSAVED_CLAIMS:
            raise LogUnavailable("the duplicate check cannot save what it has seen", retry_after=5)
        fresh: dict[ClaimKey, int] = {}
        faults: list[EventFault] = []
        for n, (key, claim) in enumerate(zip(keys, claims, strict=True)):
            known = claims[fresh[key]].content if key in fresh else self._known(key, claim, request.window)
            if known is None:
                fresh[key] = n
            elif known != claim.content:
                faults.append(EventFault(n, "id", DuplicateEvent.code, "published before with other content"))
        if faults:
            error = DuplicateEvent(
                "the same source and id were published before with other content", at=f"event {faults[0].index}"
            )
            error.faults = tuple(faults)
            raise error
        return list(fresh.values())

    def _known(self, key: ClaimKey, claim: Claim, window: float) -> bytes | None:
        since = 0 if math.isinf(window) else claim.at - int(window * SECOND)
        unsaved = self._recent.get(key) or self._flushing.get(key)
        if unsaved is not None and unsaved.at >= since:
            return unsaved.content
        saved = self._table.find(key, since)
        return None if saved is None else saved[0]

    async def _append(self, request: Checked, fresh: Mapping[ClaimKey, tuple[Claim, Draft]]) -> Sequence[Position]:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._inflight.update(dict.fromkeys(fresh, done))
        self._floors[done] = dict(self._acknowledged)
        try:
            positions = await self._log.append([draft for _, draft in fresh.values()])
        except Unavailable:
            del self._floors[done]  # Nothing was kept. After anything else nobody knows: the floor stays, and with it the mark.
            raise
        else:
            self._settle(fresh, positions)
            del self._floors[done]
            return positions
        finally:
            for key in fresh:
                del self._inflight[key]
            done.set_result(None)

    def _settle(self, fresh: Mapping[ClaimKey, tuple[Claim, Draft]], positions: Sequence[Position]) -> None:
        self._recent.update({key: claim for key, (claim, _) in fresh.items()})
        for partition, offset in positions:
            self._acknowledged[partition] = max(offset, self._acknowledged.get(partition, offset))
        self._stirred.set()

    async def run(self, reader: LogReader, windows: Mapping[TopicNumber, float]) -> None:
        """Read what the table has missed of these topics, then keep it up to date until cancelled."""
        while not self._caught_up.is_set():
            with tolerating(Unavailable, doing="reading what the duplicate check has missed"):
                self._acknowledged = dict(await self._off_loop(self._catch_up, reader, windows))
                self._caught_up.set()
            await asyncio.sleep(0 if self._caught_up.is_set() else FLUSH_AFTER)
        while True:
            await self._stirred.wait()
            self._stirred.clear()
            with tolerating(LogUnavailable, doing="saving what the duplicate check has seen"):
                await self.flush()
            if self._flushing:
                self._stirred.set()
            await asyncio.sleep(FLUSH_AFTER)

    async def flush(self) -> None:
        """Bring the claims in memory into the table."""
        mark = next(iter(self._floors.values()), self._acknowledged)
        self._flushing, self._recent = {**self._flushing, **self._recent}, {}
        await self._off_loop(self._table.add, list(self._flushing.items()), dict(mark))
        self._flushing = {}

    async def forget(self, windows: Mapping[TopicNumber, float]) -> None:
        """Remove slices that no topic looks back to any more."""
        now = self._clock.now()
        ended = [
            (topic, end)
            for topic, end in self._table.slices()
            if not math.isinf(window := windows.get(topic, 0.0)) and end + window * SECOND < now
        ]
        while await self._off_loop(self._table.drop, ended):
            pass

    async def close(self) -> None:
        """Save what is in memory and release the file."""
        if self._caught_up.is_set():
            await self.flush()
        self._thread.shutdown()
        self._table.close()

    def _catch_up(self, reader: LogReader, windows: Mapping[TopicNumber, float]) -> Marks:
        mark, ends = self._table.mark(), reader.ends()
        for topic, window in windows.items():
            after = mark
            while (page := reader.read(topic, after, Limit())).entries:
                events = [(event_from(entry.head, entry.data), entry.at) for entry in page.entries]
                claims = [(key_of(topic, event), Claim(content_of(event), at, slice_of(at, window))) for event, at in events]
                self._table.add(claims, mark)
                after = page.reached
        self._table.add((), ends)
        return ends

    async def _off_loop(self, call: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call, *arguments)
