"""From the address to the feed behind it: a topic's, or a subscription's lane. Who may not read it learns only that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus

from tidings.access.principals import Principal, Right
from tidings.clock import Instant
from tidings.delivery.feeds.pages import FeedSource, ReadySource
from tidings.delivery.feeds.partitions import Identity, layout_of, token_of
from tidings.delivery.feeds.subscription_feed import FeedPorts, LaneSource
from tidings.delivery.feeds.topic_feed import ReadyTopic, SharedSlices, TopicSource
from tidings.doors.api_parts import ApiParts
from tidings.doors.entitlement import is_entitled, require_entitled
from tidings.doors.feed_state.feed_keys import OF_SUBSCRIPTION, identity_of, key_of, lane_key, never_repeats
from tidings.doors.feeds.refusals import FeedRefused, refused
from tidings.errors import Forbidden, Malformed
from tidings.log.position import LaneNumber, Position
from tidings.registry.feeds import PartitionLayout, TopicFeed
from tidings.registry.model import Pull, Subscription, Topic
from tidings.registry.rules import parse_name
from tidings.registry.rules.approvals import sourced
from tidings.registry.rules.retention import RetentionPeriod, Retentions


@dataclass(frozen=True, slots=True)
class OpenFeed:
    """A feed that the caller may read. `key` is its own for ever: a feed made later under the same name has another."""

    label: str
    life: str
    key: str
    settings: TopicFeed
    layout: PartitionLayout
    source: FeedSource
    promise: Callable[[], bool]
    ready: ReadySource | None = None
    topic: Topic | None = None
    subscription: Subscription | None = None

    @property
    def identity(self) -> Identity:
        """What its token stands for. Whether no event is ever shown twice is looked up when it is asked for."""
        return Identity(self.life, self.key, self.promise())

    @property
    def token(self) -> str:
        return token_of(self.identity, self.layout)

    @property
    def consistent(self) -> bool:
        """Whether an event that was acknowledged is in the next read: a lane gets it once it is routed."""
        return self.topic is not None


class Feeds:
    """Finds feeds."""

    def __init__(self, parts: ApiParts) -> None:
        self._parts = parts
        self.slices = SharedSlices(parts.slices)

    def of(self, by: Principal, text: str) -> OpenFeed:
        """The feed that is written so. Raises Forbidden before anybody learns whether there is one, then Refused."""
        if text.startswith(OF_SUBSCRIPTION):
            return self._of_subscription(by, text)
        try:
            name = parse_name(text)
        except Malformed as error:
            by.require(Right.READ)
            raise no_feed(text) from error
        by.require(Right.READ, name)
        topic = self._parts.snapshot.topics.get(name)
        if topic is None:
            raise no_feed(text)
        return self.of_topic(topic)

    def of_topic(self, topic: Topic) -> OpenFeed:
        """The feed of a topic."""
        ready = ReadyTopic(self.slices, topic.number)
        return OpenFeed(
            label=str(topic.name),
            life=self._parts.life,
            key=key_of(topic),
            settings=topic.feed,
            layout=layout_of(topic.feed),
            source=TopicSource(ready),
            ready=ready,
            promise=lambda: never_repeats(self._parts, topic),
            topic=topic,
        )

    def of_lane(self, subscription: Subscription) -> OpenFeed:
        """The feed of a subscription (FEED-25)."""
        topics = self._parts.snapshot.topics
        read = [topics[name] for name in sourced(subscription, topics)]
        settings, lane = TopicFeed(), subscription.lane
        counts = self._still_counts(subscription)
        ports = FeedPorts(self._parts.lanes, self._parts.lane_index, self._parts.events)
        return OpenFeed(
            label=f"{OF_SUBSCRIPTION}{subscription.name}",
            life=self._parts.life,
            key=lane_key(subscription),
            settings=settings,
            layout=layout_of(settings),
            source=LaneSource(ports, lane, [one.number for one in read], counts),
            promise=lambda: self._lane_repeats_nothing(lane, read),
            subscription=subscription,
        )

    def kept_by(self, subscription: Subscription) -> RetentionPeriod:
        """How long events can be fetched by a subscription."""
        return Retentions(self._parts.snapshot, self._parts.settings.topics.retention).of(subscription)

    def _still_counts(self, subscription: Subscription) -> Callable[[Position, Instant], bool]:
        """Whether an entry can still be fetched: a subscription may say for itself how long."""
        kept, now = self.kept_by(subscription), self._parts.clock.now
        return (lambda position, at: kept.until(position, at) > now()) if kept.own else lambda position, at: True

    def _lane_repeats_nothing(self, lane: LaneNumber, read: Sequence[Topic]) -> bool:
        """What its topics promise, unless the lane was rewound or something of it was sent again (FEED-29)."""
        promised = bool(read) and all(never_repeats(self._parts, one) for one in read)
        return promised and not self._parts.delivery.lane(lane).counts.replays

    def _of_subscription(self, by: Principal, text: str) -> OpenFeed:
        """Nobody learns the names of others' subscriptions: what is not the caller's own is not there."""
        if not by.may(Right.READ):
            by.require(Right.SUBSCRIBE)
        try:
            found = self._parts.snapshot.subscriptions.get(parse_name(text[1:]))
        except Malformed as error:
            raise no_feed(text) from error
        if found is None or not isinstance(found.delivery, Pull) or not reads(by, found):
            raise no_feed(text)
        # Not a conflict: to readers of feeds that means to discover partitions anew.
        require_entitled(self._parts, found, Forbidden)
        return self.of_lane(found)


def reads(by: Principal, subscription: Subscription) -> bool:
    """A subscription's feed belongs to who made it; administrators read all."""
    return by.reaches(subscription.name.namespace) and (by.may(Right.ADMIN) or subscription.owner == by.name)


def stands(parts: ApiParts, feed: OpenFeed, version: str) -> bool:
    """Whether the next request for this feed would still be understood as this one was."""
    if feed.subscription is not None:
        one = parts.snapshot.subscriptions.get(feed.subscription.name)
        if one is None or one.lane != feed.subscription.lane or not isinstance(one.delivery, Pull):
            return False
        return is_entitled(parts, one)
    assert feed.topic is not None
    now = parts.snapshot.topics.get(feed.topic.name)
    if now is None or now.number != feed.topic.number:
        return False
    # Readers of v1 have no token: they notice neither other partitions nor another promise.
    return version == "v1" or _token(parts, now) == _token(parts, feed.topic)


def _token(parts: ApiParts, topic: Topic) -> str:
    return token_of(identity_of(parts, topic), layout_of(topic.feed))


def no_feed(text: str) -> FeedRefused:
    """There is no such feed."""
    return refused("not-found", f"there is no feed {text[:80]}", HTTPStatus.NOT_FOUND)
