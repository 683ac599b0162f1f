"""Hermes' names, and where they stand in the core's namespaces (HER-01, HER-02). Pure.

| Hermes                    | core                                  | document                               |
|---------------------------|---------------------------------------|----------------------------------------|
| group `shop`              | none                                  | `hermes/groups` : `shop`               |
| topic `shop.orders`       | topic `hermes:shop.orders`            | `hermes/topics` : `shop.orders`        |
| its subscription `mail`   | subscription `hermes/shop.orders:mail`| `hermes/subscriptions/shop.orders` : `mail` |
| provider `iris`           | provider `hermes:iris`                | none                                   |
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tidings.registry.model import Name
from tidings.registry.rules.names import name_fault

NAMESPACE = "hermes"
PREFIX = f"{NAMESPACE}/"
GROUPS, TOPICS, SUBSCRIPTIONS = f"{PREFIX}groups", f"{PREFIX}topics", f"{PREFIX}subscriptions/"
MODE = Name(f"{PREFIX}settings", "mode")
"""Where it is kept whether the management is read-only."""

CONTENT, LARGEST, UNCHECKED_BODY = "hermes.content-type", "hermes.max-message-size", "hermes.validation-off"
"""Labels of a topic: what publishing has to know of its document."""

JSON, AVRO = "JSON", "AVRO"

_WORD = re.compile(r"[a-zA-Z0-9_.-]+", re.ASCII)


class TopicPath(NamedTuple):
    """A topic's name in its two parts. Written `group.name`, cut at the last dot."""

    group: str
    name: str

    def __str__(self) -> str:
        return f"{self.group}.{self.name}"


def topic_path(text: str) -> TopicPath | None:
    """The parts of a topic's full name; None when it has no dot, or an empty part."""
    group, _, name = text.rpartition(".")
    return TopicPath(group, name) if group and name else None


def word_fault(text: str) -> str | None:
    """Why this cannot be the name of a topic, a subscription or a provider; None when it can."""
    return "must match [a-zA-Z0-9_.-]+" if not _WORD.fullmatch(text) else name_fault(text)


def topic_name(topic: str) -> Name:
    return Name(NAMESPACE, topic)


def subscription_name(topic: str, subscription: str) -> Name:
    return Name(PREFIX + topic, subscription)


def provider_name(provider: str) -> Name:
    return Name(NAMESPACE, provider)


def group_paper(group: str) -> Name:
    return Name(GROUPS, group)


def topic_paper(topic: str) -> Name:
    return Name(TOPICS, topic)


def subscription_paper(topic: str, subscription: str) -> Name:
    return Name(SUBSCRIPTIONS + topic, subscription)


def is_ours(namespace: str) -> bool:
    """Whether a namespace of topics and subscriptions is this door's."""
    return namespace == NAMESPACE or namespace.startswith(PREFIX)
