"""Approvals: who may publish, who may subscribe, and which approvals a change of the registry brings or ends.

exposure        approval of a new pair      a pending one
none            none is needed              ends
auto            GRANTED at once             becomes GRANTED
manual          PENDING until decided       stays

What was granted or rejected stays until somebody decides otherwise or the pair ends. A new owner of a subscription, or other
scopes, start again: the decision was about somebody else, or about other data.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import msgspec

from tidings.registry.model import (
    Approval,
    ApprovalMode,
    ApprovalState,
    Exposure,
    Name,
    NamespaceSource,
    Snapshot,
    Subscription,
    TopicsSource,
)
from tidings.registry.rules.keys import Key
from tidings.registry.rules.names import fits

Pair = tuple[Name, Name]
"""A subscription and a topic."""


class Approvals(msgspec.Struct, frozen=True):
    """What becomes of approvals when something else changes."""

    puts: tuple[Approval, ...] = ()
    ends: tuple[Key, ...] = ()


def listed(who: str, patterns: Iterable[str]) -> bool:
    """Whether a caller is on an allow-list; `team-*` lists all whose names begin so."""
    return any(fits(pattern, who) for pattern in patterns)


def may_publish(exposure: Exposure | None, who: str) -> bool:
    """Whether the topic's exposure lets this caller publish; a topic without one is open."""
    return exposure is None or listed(who, exposure.publishers)


def decision(standing: ApprovalState | None, mode: ApprovalMode) -> ApprovalState:
    """What an approval is under this mode, given what it was (None: new)."""
    if standing in (ApprovalState.GRANTED, ApprovalState.REJECTED):
        return standing
    return ApprovalState.GRANTED if mode is ApprovalMode.AUTO else ApprovalState.PENDING


def sourced(subscription: Subscription, topics: Collection[Name]) -> list[Name]:
    """Which of these topics the subscription asks for."""
    match subscription.source:
        case TopicsSource(wanted):
            return [topic for topic in wanted if topic in topics]
        case NamespaceSource(namespace):
            return [topic for topic in topics if topic.namespace == namespace]


def approvals_after(before: Snapshot, after: Snapshot, touched: Iterable[Key]) -> Approvals:
    """The approvals to put and to end once `touched` have changed; `after` holds those changes already."""
    keys = set(touched)
    explicit = {(key.name, key.topic) for key in keys if key.topic is not None}
    puts: list[Approval] = []
    ends: list[Key] = []
    for pair in sorted(explicit | set(_pairs(before, after, keys))):
        standing = after.approvals.get(pair)
        wanted = _wanted(before, after, pair, fresh=pair not in explicit)
        if wanted is None and standing is not None:
            ends.append(Key("approval", *pair))
        elif wanted is not None and (standing is None or standing.state is not wanted):
            puts.append(Approval(subscription=pair[0], topic=pair[1], state=wanted))
    return Approvals(tuple(puts), tuple(ends))


def _pairs(before: Snapshot, after: Snapshot, keys: set[Key]) -> Iterator[Pair]:
    """The pairs whose approval may have to change: those of touched subscriptions, and those of touched exposed topics."""
    subscriptions = {key.name for key in keys if key.kind == "subscription"}
    topics = {key.name for key in keys if key.kind in ("topic", "exposure")}
    for world in (before, after):
        for name in subscriptions & world.subscriptions.keys():
            yield from ((name, topic) for topic in sourced(world.subscriptions[name], world.exposures))
        # Most topics have no exposure, and then no subscription need be looked at.
        exposed = topics & world.exposures.keys()
        if exposed:
            for subscription in world.subscriptions.values():
                yield from ((subscription.name, topic) for topic in sourced(subscription, exposed))


def _wanted(before: Snapshot, after: Snapshot, pair: Pair, *, fresh: bool) -> ApprovalState | None:
    subscription, exposure = after.subscriptions.get(pair[0]), after.exposures.get(pair[1])
    if subscription is None or exposure is None or not sourced(subscription, pair[1:]):
        return None
    was = before.subscriptions.get(pair[0])
    standing = after.approvals.get(pair)
    if standing is None or (fresh and was is not None and _asks_anew(was, subscription)):
        return decision(None, exposure.approval)
    return decision(standing.state, exposure.approval)


def _asks_anew(was: Subscription, now: Subscription) -> bool:
    return was.owner != now.owner or set(was.scopes) != set(now.scopes)
