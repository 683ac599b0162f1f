"""How long an event counts for a subscription: what was in force when it was published decides (HOR-151)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from tidings.clock import SECOND, Instant
from tidings.log.position import START, LaneNumber, Marks, Position, TopicNumber
from tidings.registry.model import FormerRetention, Name, NamespaceSource, Snapshot, Subscription, Topic, TopicsSource

Former = Mapping[LaneNumber, tuple[FormerRetention, ...]]


NEVER = Instant(1 << 62)


class RetentionPeriod(msgspec.Struct, frozen=True, gc=False):
    """How long the events of one subscription count, in seconds from publishing on.

    `former`: what held for those at or below some marks, oldest first; it holds for them still.
    `own`: the subscription says so itself, and then it holds for every copy, dead letters included.
    """

    seconds: float
    former: tuple[tuple[Marks, float], ...] = ()
    own: bool = False

    @property
    def longest(self) -> float:
        """No event counts longer than this."""
        return max(self.seconds, *(seconds for _, seconds in self.former)) if self.former else self.seconds

    @property
    def shortest(self) -> float:
        """Every event counts at least for this."""
        return min(self.seconds, *(seconds for _, seconds in self.former)) if self.former else self.seconds

    def at(self, position: Position) -> float:
        """How long the event at this position counts."""
        for upto, seconds in self.former:
            if position.offset <= upto.get(position.partition, START):
                return seconds
        return self.seconds

    def until(self, position: Position, published: Instant) -> Instant:
        """When the event at this position counts no more."""
        seconds = self.at(position) if self.former else self.seconds
        return NEVER if math.isinf(seconds) else Instant(published + round(seconds * SECOND))


FOREVER = RetentionPeriod(math.inf)


def former_after(before: Snapshot, puts: Iterable[Subscription], ends: Iterable[Name], marks: Marks) -> Former:
    """The former retentions when these subscriptions are put from above `marks` on, and those end."""
    former = dict(before.former)
    for name in ends:
        former.pop(before.subscriptions[name].lane, None)
    for after in puts:
        standing = before.subscriptions.get(after.name)
        if standing is not None and standing.retention != after.retention:
            former[after.lane] = (*former.get(after.lane, ()), FormerRetention(marks, standing.retention))
    return former


def former_of(steps: Iterable[FormerRetention], now: float | None) -> tuple[FormerRetention, ...]:
    """The former retentions of one lane, from all superseded versions in order: neighbors that are the same are one."""
    known: list[FormerRetention] = []
    for step in steps:
        if known and known[-1].seconds == step.seconds:
            known.pop()
        known.append(step)
    if known and known[-1].seconds == now:
        known.pop()
    return tuple(known)


def topics_kept(snapshot: Snapshot, default: float) -> dict[TopicNumber, float]:
    """How long each topic's events are needed: by the topic itself, and by every subscription that says so, now or before."""
    kept = {one.number: default if one.retention is None else one.retention for one in snapshot.topics.values()}
    for subscription in snapshot.subscriptions.values():
        former = (one.seconds for one in snapshot.former.get(subscription.lane, ()))
        longest = max((one for one in (subscription.retention, *former) if one is not None), default=0.0)
        for topic in _topics(subscription, snapshot) if longest else ():
            kept[topic.number] = max(kept[topic.number], longest)
    return kept


def _topics(subscription: Subscription, snapshot: Snapshot) -> Iterable[Topic]:
    match subscription.source:
        case TopicsSource(names):
            return [snapshot.topics[name] for name in names if name in snapshot.topics]
        case NamespaceSource(namespace):
            return [topic for topic in snapshot.topics.values() if topic.name.namespace == namespace]


class Retentions:
    """How long the events of subscriptions count, by one snapshot. `default`: the hub's own retention, in seconds."""

    def __init__(self, snapshot: Snapshot, default: float) -> None:
        self._topics = snapshot.topics
        self._former = snapshot.former
        self._default = default
        self._namespaces: dict[str, float] = {}

    def of(self, subscription: Subscription) -> RetentionPeriod:
        """How long each of the subscription's events counts."""
        otherwise = self._of_topics(subscription)
        now = otherwise if subscription.retention is None else subscription.retention
        earlier = self._former.get(subscription.lane, ())
        return RetentionPeriod(
            now,
            tuple((one.upto, otherwise if one.seconds is None else one.seconds) for one in earlier),
            own=subscription.retention is not None or any(one.seconds is not None for one in earlier),
        )

    def _of_topics(self, subscription: Subscription) -> float:
        match subscription.source:
            case TopicsSource(names):
                return self._longest([self._topics[name] for name in names if name in self._topics])
            case NamespaceSource(namespace):
                if namespace not in self._namespaces:
                    inside = [topic for topic in self._topics.values() if topic.name.namespace == namespace]
                    self._namespaces[namespace] = self._longest(inside)
                return self._namespaces[namespace]

    def _longest(self, topics: Sequence[Topic]) -> float:
        kept = [self._default if topic.retention is None else topic.retention for topic in topics]
        return max(kept, default=self._default)
