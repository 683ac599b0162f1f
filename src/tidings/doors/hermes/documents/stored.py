"""The documents that stand, as they are kept. Raises HermesRefused for what is not there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tidings.doors.hermes.names import (
    GROUPS,
    MODE,
    NAMESPACE,
    SUBSCRIPTIONS,
    TOPICS,
    group_paper,
    provider_name,
    subscription_name,
    subscription_paper,
    topic_name,
    topic_paper,
    topic_path,
)
from tidings.doors.hermes.refusals import no_group, no_provider, no_subscription, no_topic
from tidings.registry.model import Name, Provider, Snapshot, Subscription, Topic

Kept = Mapping[str, Any]
READ_ONLY, READ_WRITE = "readOnly", "readWrite"


def _texts(snapshot: Snapshot, namespace: str) -> list[Kept]:
    return [paper.text for name, paper in sorted(snapshot.papers.items()) if name.namespace == namespace]


def groups(snapshot: Snapshot) -> list[Kept]:
    """All groups, by name."""
    return _texts(snapshot, GROUPS)


def group(snapshot: Snapshot, name: str) -> Kept:
    """One group."""
    paper = snapshot.papers.get(group_paper(name))
    if paper is None:
        raise no_group(name)
    return paper.text


def topics(snapshot: Snapshot, of_group: str = "") -> list[Kept]:
    """All topics, or those of a group, by name."""
    return [one for one in _texts(snapshot, TOPICS) if not of_group or _group_of(one) == of_group]


def _group_of(topic: Kept) -> str:
    path = topic_path(topic["name"])
    return path.group if path else ""


def topic(snapshot: Snapshot, name: str) -> Kept:
    """One topic."""
    paper = snapshot.papers.get(topic_paper(name))
    if paper is None:
        raise no_topic(name)
    return paper.text


def core_topic_of(snapshot: Snapshot, name: str) -> Topic:
    """What a topic's document came to."""
    topic(snapshot, name)
    return snapshot.topics[topic_name(name)]


def subscriptions(snapshot: Snapshot, of_topic: str) -> list[Kept]:
    """All subscriptions of a topic, by name."""
    return _texts(snapshot, SUBSCRIPTIONS + of_topic)


def all_subscriptions(snapshot: Snapshot) -> Iterator[Kept]:
    """The subscriptions of all topics."""
    for name, paper in sorted(snapshot.papers.items()):
        if name.namespace.startswith(SUBSCRIPTIONS):
            yield paper.text


def subscription(snapshot: Snapshot, of_topic: str, name: str) -> Kept:
    """One subscription."""
    topic(snapshot, of_topic)
    paper = snapshot.papers.get(subscription_paper(of_topic, name))
    if paper is None:
        raise no_subscription(of_topic, name)
    return paper.text


def core_subscription_of(snapshot: Snapshot, of_topic: str, name: str) -> Subscription:
    """What a subscription's document came to."""
    subscription(snapshot, of_topic, name)
    return snapshot.subscriptions[subscription_name(of_topic, name)]


def providers(snapshot: Snapshot) -> list[Provider]:
    """All providers, by name."""
    return [one for name, one in sorted(snapshot.providers.items()) if name.namespace == NAMESPACE]


def provider(snapshot: Snapshot, name: str) -> Provider:
    """One provider."""
    found = snapshot.providers.get(provider_name(name))
    if found is None:
        raise no_provider(name)
    return found


def mode(snapshot: Snapshot) -> str:
    """Whether documents can be changed."""
    paper = snapshot.papers.get(MODE)
    return READ_WRITE if paper is None else str(paper.text["mode"])


def has_paper(snapshot: Snapshot, name: Name) -> bool:
    return name in snapshot.papers
