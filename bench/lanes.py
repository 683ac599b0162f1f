"""A data folder whose lanes are full, or empty, or get an entry now and then: delivery is measured without the rest of a hub."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tidings.access.secret_box import Box, sealing_key
from tidings.clock import SystemClock
from tidings.config import DeliverSettings, Settings, load
from tidings.events.attribute_rules import checked
from tidings.events.http_binding import encode_structured
from tidings.events.model import Event
from tidings.events.stored import head_of
from tidings.lanes.sink import Routed
from tidings.lanes.sqlite.block import packed
from tidings.lanes.sqlite.writer import SqliteLanesWriter
from tidings.log.port import Draft
from tidings.log.position import LaneNumber, embedded
from tidings.log.sqlite.writer import SqliteLogWriter
from tidings.registry.credentials import SigningKey, SigningVersion
from tidings.registry.model import Name, Push, Subscription, Topic, TopicsSource
from tidings.registry.rules.credentials import sealed
from tidings.registry.store import open_writer

TOPIC = Name("default", "bench")
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be delivered where: so many events in all, shared evenly by so many subscriptions."""

    url: str
    events: int
    subscriptions: int = 1
    signed: bool = False
    wishes: tuple[tuple[str, Any], ...] = ()


def settings_of(folder: Path, workers: int = 1) -> Settings:
    return replace(load(environ={}, flags={"data": str(folder)}), deliver=DeliverSettings(workers))


def an_event(n: int) -> Event:
    data = b'{"order":%d,"total":42.5,"currency":"EUR","items":[{"sku":"A-100","quantity":2},{"sku":"B-200","quantity":1}]}' % n
    named = {"specversion": "1.0", "id": str(n), "source": "/bench", "type": "order.created"}
    return checked({**named, "datacontenttype": "application/json"}, data)


def a_request() -> tuple[dict[str, str], bytes]:
    """The headers and the body that the hub would post."""
    headers, body = encode_structured(an_event(12345))
    return {**dict(headers), "tidings-delivery-id": "0" * 36, "tidings-attempt": "1"}, body


class Lanes:
    """The log, the lanes and the registry of one folder. Made inside an event loop; `close` before workers read."""

    def __init__(self, folder: Path, wanted: Wanted) -> None:
        self._settings = settings_of(folder)
        self._now = SystemClock().now()
        self._wanted = wanted
        self._folder = folder
        self._log = SqliteLogWriter(folder, self._settings.log)
        self._lanes = SqliteLanesWriter(folder)
        self._topic, self._numbers = self._register()

    async def fill(self) -> None:
        """Every lane gets its share of the events."""
        each = self._wanted.events // self._wanted.subscriptions
        offsets = [offset for first in range(0, each, 1000) for offset in await self._append(first, min(1000, each - first))]
        steps = range(0, each, 2000)
        blocks = [packed(lane, offsets[first : first + 2000]) for lane in sorted(self._numbers) for first in steps]
        self._lanes.write(Routed(runs=blocks, scanned=embedded(offsets[-1] if offsets else 0)))

    async def one_more(self, n: int) -> float:
        """One entry for the first lane; when it was there."""
        offsets = await self._append(n, 1)
        self._lanes.write(Routed(runs=[packed(self._numbers[0], offsets)], scanned=embedded(offsets[-1])))
        return time.monotonic()

    async def close(self) -> None:
        await self._log.close()
        self._lanes.close()

    async def _append(self, first: int, count: int) -> list[int]:
        events = [(n, an_event(n)) for n in range(first, first + count)]
        drafts = [Draft(self._topic, self._now, n % 100, head_of(event), event.data) for n, event in events]
        return [position.offset for position in await self._log.append(drafts)]

    def _register(self) -> tuple[Any, list[LaneNumber]]:
        wanted = self._wanted
        keys = (SigningKey(version=SigningVersion.V1, secret=SECRET),) if wanted.signed else ()
        push = Push(url=wanted.url, signing=keys, **dict(wanted.wishes))
        seal = Box(sealing_key(self._settings.access, self._folder)).seal
        named = [Name("default", f"s{n}") for n in range(wanted.subscriptions)]
        subscriptions = [sealed(Subscription(name=one, source=TopicsSource((TOPIC,)), delivery=push), seal) for one in named]
        registry = open_writer(self._folder)
        try:
            (topic,) = registry.put([Topic(name=TOPIC)], by="bench", at=self._now, marks=embedded(0))
            made = registry.put(subscriptions, by="bench", at=self._now, marks=embedded(0))
        finally:
            registry.close()
        return topic.number, [one.lane for one in made]  # type: ignore[union-attr]
