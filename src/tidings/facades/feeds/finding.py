"""From the address to the feed behind it: a topic's, or a subscription's lane. Who may not read it learns only that."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus

from tidings.access.principals import Principal, Right
from tidings.delivery.feeds.layout import layout_of, token_of
from tidings.delivery.feeds.pages import Source
from tidings.delivery.feeds.sources import TopicSource
from tidings.errors import Malformed
from tidings.facades.feeds.refusals import Refused, refused
from tidings.facades.parts import Parts
from tidings.registry.feeds import Feed, Layout
from tidings.registry.model import Name, Topic
from tidings.registry.rules import parse_name

FOREVER = "forever"


@dataclass(frozen=True, slots=True)
class OpenFeed:
    """A feed that the caller may read. `key` is its own for ever: a feed made later under the same name has another."""

    label: str
    key: str
    settings: Feed
    layout: Layout
    source: Source
    exactly_once: bool
    consistent: bool
    topic: Topic | None

    @property
    def token(self) -> str:
        return token_of(self.key, self.layout)


def open_feed(parts: Parts, by: Principal, text: str) -> OpenFeed:
    """The feed that is written so. Raises Forbidden before anybody learns whether there is one, then Refused."""
    try:
        name = parse_name(text)
    except Malformed as error:
        by.require(Right.READ)
        raise no_feed(text) from error
    by.require(Right.READ, name)
    topic = parts.snapshot.topics.get(name)
    if topic is None:
        raise no_feed(text)
    return of_topic(parts, topic)


def of_topic(parts: Parts, topic: Topic) -> OpenFeed:
    """The feed of a topic."""
    return OpenFeed(
        label=str(topic.name),
        key=str(topic.number),
        settings=topic.feed,
        layout=layout_of(topic.feed),
        source=TopicSource(parts.slices, topic.number),
        exactly_once=never_repeats(parts, topic),
        consistent=True,
        topic=topic,
    )


def never_repeats(parts: Parts, topic: Topic) -> bool:
    """Whether no event is ever shown twice (FAPI-07)."""
    return (topic.duplicates or parts.settings.topics.duplicates) == FOREVER and not topic.feed.may_repeat


def layout_now(parts: Parts, name: Name, topic: Topic) -> Layout | None:
    """The layout in force now; None when the topic has ended."""
    now = parts.snapshot.topics.get(name)
    return layout_of(now.feed) if now is not None and now.number == topic.number else None


def no_feed(text: str) -> Refused:
    """There is no such feed."""
    return refused("not-found", f"there is no feed {text[:80]}", HTTPStatus.NOT_FOUND)
