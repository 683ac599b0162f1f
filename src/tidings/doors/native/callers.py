"""Who asks, and what they get to see: the checks that several resources share."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from tidings.access.authentication import address_of
from tidings.access.principals import Principal, Right
from tidings.doors.api_parts import ApiParts
from tidings.doors.native.bodies.wire import name_in_path
from tidings.errors import Forbidden, NotFound
from tidings.registry.model import Name, Snapshot, Subscription, Topic


async def _parts(request: Request) -> ApiParts:
    parts: ApiParts = request.app.state.parts
    return parts


async def _caller(request: Request) -> Principal:
    parts: ApiParts = request.app.state.parts
    return await parts.gate.identify(request.scope["headers"], address_of(request.scope))


PartsOf = Annotated[ApiParts, Depends(_parts)]
Caller = Annotated[Principal, Depends(_caller)]


def is_admin(caller: Principal) -> bool:
    return caller.may(Right.ADMIN)


def sees_topic(caller: Principal, topic: Name) -> bool:
    """Whoever may do anything with a topic may also look at it."""
    return any(caller.may(right, topic) for right in (Right.PUBLISH, Right.SUBSCRIBE, Right.READ))


def topic_of(parts: ApiParts, caller: Principal, text: str) -> Topic:
    """The topic of that name, for somebody who may see it. Raises NotFound: others learn nothing, not even that it is there."""
    name = name_in_path(text, "topic")
    topic = parts.snapshot.topics.get(name)
    if topic is None or not sees_topic(caller, name):
        raise NotFound(f"there is no topic {name}")
    return topic


def owns(caller: Principal, subscription: Subscription) -> bool:
    """A subscription belongs to who made it; administrators see all. A token of another realm does not reach it."""
    if not caller.reaches(subscription.name.namespace):
        return False
    return is_admin(caller) or (caller.may(Right.SUBSCRIBE) and subscription.owner == caller.name)


def subscription_of(parts: ApiParts, caller: Principal, text: str) -> Subscription:
    """The subscription of that name, for its owner. Raises NotFound: nobody learns the names of others' subscriptions."""
    name = name_in_path(text, "subscription")
    subscription = parts.snapshot.subscriptions.get(name)
    if subscription is None or not owns(caller, subscription):
        raise NotFound(f"there is no subscription {name}")
    return subscription


def refuse_foreign(caller: Principal, name: Name, snapshot: Snapshot) -> None:
    """Nobody takes over a name that somebody else uses."""
    standing = snapshot.subscriptions.get(name)
    if standing is not None and not owns(caller, standing):
        raise Forbidden(f"the name {name} is taken", expected="another name")
