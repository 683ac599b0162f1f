"""Builders: small valid values of which a test names only what it is about."""

from __future__ import annotations

from typing import Any

from tidings.clock import Instant
from tidings.events.attribute_rules import checked
from tidings.events.model import Attribute, Event
from tidings.log.port import Draft
from tidings.log.position import EMBEDDED, Offset, Position, TopicNumber
from tidings.registry.model import (
    DEFAULT_NAMESPACE,
    Approval,
    ApprovalMode,
    ApprovalState,
    Exposure,
    FilterText,
    Name,
    Pull,
    Subscription,
    Topic,
    TopicsSource,
)


def a_name(text: str = "orders") -> Name:
    """`orders` in the default namespace, or `hermes:orders`."""
    namespace, colon, name = text.partition(":")
    return Name(namespace, name) if colon else Name(DEFAULT_NAMESPACE, text)


def a_topic(name: str = "orders", **fields: Any) -> Topic:
    return Topic(name=a_name(name), **fields)


def an_exposure(topic: str = "orders", approval: str = "auto", **fields: Any) -> Exposure:
    return Exposure(topic=a_name(topic), approval=ApprovalMode(approval), **fields)


def a_subscription(name: str = "billing", *topics: str, **fields: Any) -> Subscription:
    """A pull subscription to these topics (`orders` when none is given)."""
    source = TopicsSource(tuple(a_name(topic) for topic in topics or ("orders",)))
    return Subscription(**{"name": a_name(name), "source": source, "delivery": Pull(), **fields})


def an_approval(subscription: str = "billing", topic: str = "orders", state: str = "granted") -> Approval:
    return Approval(subscription=a_name(subscription), topic=a_name(topic), state=ApprovalState(state))


def a_filter(text: Any, dialect: str = "tidings") -> FilterText:
    return FilterText(dialect=dialect, text=text)


def an_event(data: bytes | None = None, *, base64: bool = False, **attributes: Attribute) -> Event:
    """A valid event with these attributes on top of the required ones."""
    required = {"specversion": "1.0", "id": "1", "source": "/orders", "type": "order.created"}
    return checked({**required, **attributes}, data, base64=base64)


def a_position(offset: int) -> Position:
    """The place of an event in the embedded log."""
    return Position(EMBEDDED, Offset(offset))


def a_draft(*, topic: int = 1, at: int = 1, key_hash: int = 7, head: bytes = b"{}", data: bytes | None = b"{}") -> Draft:
    return Draft(topic=TopicNumber(topic), at=Instant(at), key_hash=key_hash, head=head, data=data)
