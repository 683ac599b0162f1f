"""By what a feed is known for ever, and what its token stands for. A feed made later under the same name has another key."""

from __future__ import annotations

from tidings.delivery.feeds.partitions import Identity, layout_of
from tidings.doors.api_parts import ApiParts
from tidings.registry.model import Subscription, Topic

FOREVER = "forever"
OF_SUBSCRIPTION = "~"


def key_of(topic: Topic) -> str:
    """What the feed of this topic is known by."""
    return str(topic.number)


def lane_key(subscription: Subscription) -> str:
    """What the feed of this subscription is known by."""
    return f"{OF_SUBSCRIPTION}{subscription.lane}"


def identity_of(parts: ApiParts, topic: Topic) -> Identity:
    """What the token of a topic's feed stands for."""
    return Identity(parts.life, key_of(topic), never_repeats(parts, topic))


def never_repeats(parts: ApiParts, topic: Topic) -> bool:
    """Whether no event is ever shown twice (FAPI-07), also not to readers that take partitions in any order."""
    checked = (topic.duplicates or parts.settings.topics.duplicates) == FOREVER
    return checked and not topic.feed.may_repeat and not layout_of(topic.feed).crossed
