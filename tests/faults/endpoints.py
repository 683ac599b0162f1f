"""The endpoints of a run. Each has a mood: how often it fails, hangs, drops connections, and how slow it is."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from tests.faults.receipts import LineOf, Receipts
from tests.faults.receiver import NO_CONTENT, CountingReceiver, ids_in


@dataclass(frozen=True, slots=True)
class Mood:
    """How an endpoint behaves. Shares are of requests; `slow` is the longest time in seconds that an answer takes.

    `unwell`: the share of probes that are answered like a failing request.
    """

    fails: float = 0.0
    status: int = 500
    drops: float = 0.0
    hangs: float = 0.0
    slow: float = 0.0
    unwell: float = 0.0


WELL = Mood()

FITS: Mapping[str, Mood] = {
    "well": WELL,
    "failing": Mood(fails=1.0),
    "busy": Mood(fails=0.8, status=503, unwell=0.5),
    "hanging": Mood(hangs=1.0),
    "dropping": Mood(drops=0.7),
    "slow": Mood(slow=3.0),
}
"""Moods that an endpoint can fall into for a while."""


class Endpoints(CountingReceiver):
    """One endpoint per subscription, at `/name`. `garbage` is what came and could not be read."""

    def __init__(self, moods: Mapping[str, Mood], lines: Mapping[str, LineOf], seed: int) -> None:
        self.moods = dict(moods)
        self.garbage: list[str] = []
        self._usual = dict(moods)
        self._chances = {name: random.Random(f"{seed} {name}") for name in moods}
        super().__init__()
        self.receipts = {name: Receipts(name, lines.get(name)) for name in moods}

    def fall(self, name: str, fit: str) -> None:
        """Let an endpoint be in this mood until `recover`."""
        self.moods[name] = FITS[fit]

    def recover(self, name: str) -> None:
        """Let an endpoint be as it usually is."""
        self.moods[name] = self._usual[name]

    def relapse(self) -> None:
        """Let all endpoints be as they usually are."""
        self.moods = dict(self._usual)

    def heal(self) -> None:
        """From now on all of them answer well and at once."""
        self.moods = dict.fromkeys(self.moods, WELL)

    def answer(self, transport: asyncio.Transport, path: str, body: bytes) -> None:
        name = path.strip("/")
        mood, chance = self.moods[name], self._chances[name]
        try:
            events = ids_in(body)
        except msgspec.MsgspecError as error:
            self.garbage.append(f"{name}: {body[:100]!r} ({error})")
            transport.write(_failure(mood))
            return
        self.receipts[name].sent(events)
        draw, wait = chance.random(), chance.uniform(0.0, mood.slow)
        if draw < mood.hangs:
            return
        if draw < mood.hangs + mood.drops:
            transport.abort()
        elif draw < mood.hangs + mood.drops + mood.fails:
            self._loop.call_later(wait, _write, transport, _failure(mood))
        elif wait:
            self._loop.call_later(wait, self._take, transport, name, events)
        else:
            self._take(transport, name, events)

    def probe(self, transport: asyncio.Transport, path: str) -> None:
        name = path.strip("/")
        mood = self.moods[name]
        transport.write(_failure(mood) if self._chances[name].random() < mood.unwell else NO_CONTENT)

    def _take(self, transport: asyncio.Transport, name: str, events: list[str]) -> None:
        # An answer to somebody who is gone is none: the hub cannot know that the events were taken.
        if not transport.is_closing():
            self.receipts[name].took(events)
            transport.write(NO_CONTENT)


def _failure(mood: Mood) -> bytes:
    return f"HTTP/1.1 {mood.status} Ill\r\ncontent-length: 0\r\n\r\n".encode()


def _write(transport: asyncio.Transport, answer: bytes) -> None:
    if not transport.is_closing():
        transport.write(answer)
