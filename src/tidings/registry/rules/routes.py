"""Routes: which lane gets which topics' events through which scopes, filter and projection, from which position to which.

A subscription gets a topic's events only while subscription, topic and, where the topic is exposed, a granted approval, a
place on the list and the scopes it names are in force together, and it is not blocked. Steps that change nothing of this (a
new callback, a longer retention) are one route: no gap, and no position of a topic in two routes of a lane.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tidings.log.position import START, LaneNumber, Marks, TopicNumber
from tidings.registry.model import (
    Approval,
    ApprovalState,
    Exposure,
    Name,
    NamespaceSource,
    Route,
    Source,
    Subscription,
    Topic,
    TopicsSource,
)
from tidings.registry.rules.approvals import listed
from tidings.registry.rules.fills import WantedFill, wanted_fill
from tidings.registry.rules.keys import Version, canonical
from tidings.registry.rules.scopes import EVERYTHING, Offer, offered

Topics = frozenset[TopicNumber]
NO_TOPICS: Topics = frozenset()


class _Way(NamedTuple):
    """How topics' events come into a lane. Compared by `meaning`, since Python holds filters on True and on 1 to be equal."""

    subscription: Subscription
    offer: Offer
    meaning: bytes


class _Step(NamedTuple):
    """What a lane gets, and how, from a revision on: the topics of each way by its meaning."""

    revision: int
    topics: Mapping[bytes, Topics]


def routes(versions: Iterable[Version], marks: Mapping[int, Marks], floor: int = 0) -> list[Route]:
    """The routes in force at some position that the revisions above `floor`, or `floor` itself, govern.

    `versions` must hold every version in force at `floor` or later, `marks` the marks of `floor` and all later revisions.
    What holds at `floor` already is given as if it began there.
    """
    history = RouteHistory(versions, marks, floor)
    return [route for lane in history.lanes for route in history.routes_of(lane)]


class RouteHistory:
    """The routes of every lane, kept up to date with changes of the registry: only lanes that a change touches are looked at.

    What it is made of is as for `routes`.
    """

    def __init__(self, versions: Iterable[Version], marks: Mapping[int, Marks], floor: int = 0) -> None:
        self._history = _History(versions)
        self._marks = dict(marks)
        self._floor = floor

    @property
    def lanes(self) -> Iterable[LaneNumber]:
        return self._history.lanes

    @property
    def avro_schemas(self) -> Iterable[str]:
        """The Avro schemas that events of any topic may have been written by. They never become fewer."""
        return self._history.avro_schemas

    @property
    def revision(self) -> int:
        """The newest revision that it knows."""
        return max(self._marks, default=0)

    def update(self, versions: Iterable[Version], marks: Mapping[int, Marks]) -> set[LaneNumber]:
        """Take in every version that began or ended in newer revisions, and their marks; the lanes whose routes may differ now."""
        self._marks |= marks
        return {lane for version in versions for lane in self._history.renew(version)}

    def fill_of(self, lane: LaneNumber) -> WantedFill | None:
        """The filling that the lane's subscription asks for, done or not; None: none, or the subscription is gone."""
        own = self._history.lanes[lane]
        newest = own[-1].document if own and own[-1].until is None else None
        if not isinstance(newest, Subscription) or newest.fill is None:
            return None
        asked = next(v.since for v in own if isinstance(v.document, Subscription) and v.document.fill == newest.fill)
        return wanted_fill(lane, newest.fill, self._marks[max(asked, self._floor)], self.routes_of(lane))

    def routes_of(self, lane: LaneNumber) -> list[Route]:
        """The routes of one lane."""
        ways: dict[bytes, _Way] = {}
        steps = list(_steps(self._history.lanes[lane], self._history, self._floor, ways))
        return [route for way in ways.values() for route in _joined(lane, way, steps, self._marks)]


def _steps(own: Sequence[Version], history: _History, floor: int, ways: dict[bytes, _Way]) -> Iterator[_Step]:
    """What one lane gets, from each revision on that changes it; the first is at `floor` or where the lane began."""
    for version in own:
        subscription = version.document
        assert isinstance(subscription, Subscription)
        source = history.source(subscription.source)
        made = _Ways(subscription, ways)
        first = max(version.since, floor)
        moments = {first}
        for moment in (*source.moments, *history.approval_moments(subscription.name, source.exposed)):
            if first < moment and (version.until is None or moment < version.until):
                moments.add(moment)
        for moment in sorted(moments):
            topics: dict[bytes, Topics] = defaultdict(frozenset)
            for offer, some in history.offers_at(subscription, source, moment):
                if some:
                    topics[made.of(offer)] |= some
            yield _Step(moment, topics)
    if own and own[-1].until is not None:
        yield _Step(own[-1].until, {})


class _Ways:
    """The ways of one version of a subscription, as they are met. Writing down their meaning is what costs."""

    def __init__(self, subscription: Subscription, known: dict[bytes, _Way]) -> None:
        self._subscription = subscription
        self._known = known
        self._everything: bytes | None = None

    def of(self, offer: Offer) -> bytes:
        """The meaning of the way with this offer."""
        if offer is EVERYTHING and self._everything is not None:
            return self._everything
        own = self._subscription
        meaning = canonical((own.filter, own.projection, *offer))
        self._known.setdefault(meaning, _Way(own, offer, meaning))
        if offer is EVERYTHING:
            self._everything = meaning
        return meaning


def _joined(lane: LaneNumber, way: _Way, steps: Sequence[_Step], marks: Mapping[int, Marks]) -> Iterator[Route]:
    """One way's part of the steps as routes. Steps without a single position vanish; neighbors that are the same are one."""
    kept: list[tuple[int, Topics]] = []
    for revision, topics in ((step.revision, step.topics.get(way.meaning, NO_TOPICS)) for step in steps):
        if kept and not _advanced(marks[kept[-1][0]], marks[revision]):
            kept.pop()
        if not kept or kept[-1][1] != topics:
            kept.append((revision, topics))
    for (revision, topics), following in zip(kept, [*kept[1:], None], strict=True):
        if topics:
            yield Route(
                lane=lane,
                topics=topics,
                filter=way.subscription.filter,
                since=marks[revision],
                until=None if following is None else marks[following[0]],
                select=way.offer.select,
                scope=way.offer.scope,
                projection=way.subscription.projection,
            )


def _advanced(since: Marks, until: Marks) -> bool:
    """Whether there is any position above `since` and not above `until`."""
    return any(offset > since.get(partition, START) for partition, offset in until.items())


class _Source:
    """The topics of one source over time, those that were never exposed put together already."""

    def __init__(self, plain: Sequence[Version], exposed: tuple[Name, ...], exposed_moments: Iterable[int]) -> None:
        self.exposed = exposed
        changes: dict[int, list[tuple[bool, TopicNumber]]] = defaultdict(list)
        for version in plain:
            assert isinstance(version.document, Topic)
            changes[version.since].append((True, version.document.number))
            if version.until is not None:
                changes[version.until].append((False, version.document.number))
        self._since = sorted(changes)
        self._topics: list[Topics] = []
        numbers: set[TopicNumber] = set()
        for moment in self._since:
            for joins, number in changes[moment]:
                (numbers.add if joins else numbers.discard)(number)
            self._topics.append(frozenset(numbers))
        self.moments = tuple(sorted({*self._since, *exposed_moments}))

    def open_at(self, moment: int) -> Topics:
        place = bisect_right(self._since, moment)
        return self._topics[place - 1] if place else NO_TOPICS


class _History:
    """The versions by what they are about."""

    def __init__(self, versions: Iterable[Version]) -> None:
        self.lanes: dict[LaneNumber, list[Version]] = defaultdict(list)
        self._topics: dict[Name, list[Version]] = defaultdict(list)
        self._namespaces: dict[str, dict[Name, None]] = defaultdict(dict)
        self._exposures: dict[Name, list[Version]] = defaultdict(list)
        self._approvals: dict[tuple[Name, Name], list[Version]] = defaultdict(list)
        self._sources: dict[Source, _Source] = {}
        self.avro_schemas: dict[str, None] = {}
        self._asking: dict[Source, set[LaneNumber]] = defaultdict(set)
        self._named: dict[Name, set[LaneNumber]] = defaultdict(set)
        for version in sorted(versions, key=lambda version: version.since):
            self._shelf(version).append(version)

    def renew(self, version: Version) -> Iterable[LaneNumber]:
        """Take in a version that is new, or that has ended; the lanes that it touches."""
        shelf = self._shelf(version)
        place = next((n for n, known in enumerate(shelf) if known.since == version.since), None)
        if place is None:
            shelf.append(version)
        else:
            shelf[place] = version
        match version.document:
            case Topic(name=name) | Exposure(topic=name):
                return self._touched(name)
            case Approval(subscription=name):
                return self._named[name]
            case Subscription(lane=lane):
                return (lane,)
        return ()

    def _touched(self, topic: Name) -> set[LaneNumber]:
        """The lanes whose source may hold this topic. What is known of these sources is made anew."""
        lanes: set[LaneNumber] = set()
        for source, asking in self._asking.items():
            if source == NamespaceSource(topic.namespace) or (isinstance(source, TopicsSource) and topic in source.topics):
                self._sources.pop(source, None)
                lanes |= asking
        return lanes

    def _shelf(self, version: Version) -> list[Version]:
        """Where the versions of one thing stand, in order."""
        match version.document:
            case Topic(name=name, avro=avro):
                self._namespaces[name.namespace][name] = None
                if avro is not None:
                    self.avro_schemas |= dict.fromkeys(one.schema for one in avro.versions)
                return self._topics[name]
            case Exposure(topic=name):
                return self._exposures[name]
            case Approval(subscription=name, topic=topic):
                return self._approvals[name, topic]
            case Subscription(lane=lane) as subscription:
                self._asking[subscription.source].add(lane)
                self._named[subscription.name].add(lane)
                return self.lanes[lane]
        return []

    def source(self, source: Source) -> _Source:
        """The source's topics over time; made once for all subscriptions that share it."""
        if source not in self._sources:
            self._sources[source] = self._made(source)
        return self._sources[source]

    def _made(self, source: Source) -> _Source:
        match source:
            case TopicsSource(names):
                topics: Iterable[Name] = names
            case NamespaceSource(namespace):
                topics = self._namespaces.get(namespace, ())
        exposed = tuple(name for name in topics if name in self._exposures)
        plain = [version for name in topics if name not in self._exposures for version in self._topics.get(name, ())]
        return _Source(
            plain, exposed, self._moments(v for n in exposed for v in (*self._topics.get(n, ()), *self._exposures[n]))
        )

    def approval_moments(self, subscription: Name, exposed: Iterable[Name]) -> Iterator[int]:
        return self._moments(v for topic in exposed for v in self._approvals.get((subscription, topic), ()))

    def offers_at(self, subscription: Subscription, source: _Source, moment: int) -> Iterator[tuple[Offer, Topics]]:
        """What the subscription may have at this moment, of the topics that were never exposed and of each of the others."""
        if subscription.blocked:
            return
        if not subscription.scopes:
            yield EVERYTHING, source.open_at(moment)
        for topic in source.exposed:
            found = _at(self._topics.get(topic, ()), moment)
            offer = self._offer(subscription, topic, moment)
            if isinstance(found, Topic) and offer is not None:
                yield offer, frozenset({found.number})

    def _offer(self, subscription: Subscription, topic: Name, moment: int) -> Offer | None:
        """What of a topic, exposed at one time or another, the subscription may have; None: nothing."""
        exposure = _at(self._exposures[topic], moment)
        if not isinstance(exposure, Exposure):
            return None if subscription.scopes else EVERYTHING
        approval = _at(self._approvals.get((subscription.name, topic), ()), moment)
        granted = isinstance(approval, Approval) and approval.state is ApprovalState.GRANTED
        if not granted or not listed(subscription.owner, exposure.subscribers):
            return None
        return offered(exposure.scopes, subscription.scopes)

    @staticmethod
    def _moments(versions: Iterable[Version]) -> Iterator[int]:
        for version in versions:
            yield version.since
            if version.until is not None:
                yield version.until


def _at(versions: Sequence[Version], moment: int) -> object:
    """The document in force at this moment among versions of one thing."""
    return next((v.document for v in versions if v.since <= moment and (v.until is None or moment < v.until)), None)
