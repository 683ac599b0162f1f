"""Retention: which entries may go, and the task that lets them go. Deleted topics keep their turn until they are empty."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from tidings.clock import SECOND, Clock, Instant, LeapWatch
from tidings.lanes.port import Lanes
from tidings.log.port import LogWriter, Retention
from tidings.log.position import COMMANDS, START, Marks, TopicNumber
from tidings.registry.model import Change, Snapshot, Topic
from tidings.registry.port import Changes, RegistryReader
from tidings.registry.rules.retention import topics_kept

GRACE = 3600.0
"""Seconds that entries stay after access to them has expired, so that nobody is cut off in the middle of a read."""

PAGE = 1000


def retentions(topics: Iterable[tuple[TopicNumber, float | None]], default: float, now: Instant) -> list[Retention]:
    """Before when entries of each topic, and of the hub's own commands, may go."""
    kept = {number: default if seconds is None else seconds for number, seconds in topics}
    return [Retention(number, _before(now, seconds)) for number, seconds in {COMMANDS: default, **kept}.items()]


def _before(now: Instant, seconds: float) -> Instant:
    return Instant(now - int((seconds + GRACE) * SECOND))


def governed_from(changes: Iterable[Change], longest: float, routed: Marks, now: Instant) -> Marks:
    """Marks below which no event is left: the last change before the longest retention began, and never beyond `routed`."""
    oldest = _before(now, longest)
    marks: Marks = {}
    for change in changes:
        if change.at < oldest:
            marks = change.marks
    return {partition: min(offset, routed.get(partition, START)) for partition, offset in marks.items()}


@dataclass(slots=True)
class Audit:
    """What the audit log says, read once and then followed: every topic there ever was, and when each change began to hold."""

    topics: dict[TopicNumber, float | None] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    read_to: int = 0

    def follow(self, found: Sequence[Change]) -> None:
        for change in found:
            if change.kind == "topic" and change.document is not None:
                topic = msgspec.convert(change.document, Topic)
                self.topics[topic.number] = topic.retention
            if not self.changes or self.changes[-1].revision != change.revision:
                self.changes.append(msgspec.structs.replace(change, document=None))
            self.read_to = change.revision


class RetentionSweep:
    """Lets old entries and superseded versions go. Nothing that was not routed is ever removed, nor by a clock that has leapt."""

    def __init__(
        self, log: LogWriter, lanes: Lanes, registry: RegistryReader, changes: Changes, default: float, clock: Clock
    ) -> None:
        self._log = log
        self._changes = changes
        self._lanes = lanes
        self._registry = registry
        self._default = default
        self._clock = clock
        self._leaps = LeapWatch(clock)
        self._audit = Audit()
        self._forgotten: Marks = {}

    def leapt(self) -> float:
        """Seconds by which the machine's clock has leapt forward; 0 when it can be believed."""
        return self._leaps.leapt()

    async def sweep(self, snapshot: Snapshot) -> int:
        """One round; how many entries went. Raises ClockLeapt, and removes nothing, when the clock makes everything look old."""
        self._leaps.check()
        await asyncio.to_thread(self._follow_audit)
        now, routed = self._clock.now(), await self._lanes.routed()
        kept: Mapping[TopicNumber, float | None] = {**self._audit.topics, **topics_kept(snapshot, self._default)}
        gone = await self._log.trim(retentions(kept.items(), self._default, now), routed)
        longest = max((seconds for seconds in kept.values() if seconds is not None), default=self._default)
        below = governed_from(self._audit.changes, max(longest, self._default), routed, now)
        if below != self._forgotten:
            await self._changes.forget(below)
            self._forgotten = below
        return gone

    def _follow_audit(self) -> None:
        while found := self._registry.changes(self._audit.read_to, PAGE):
            self._audit.follow(found)
