"""Approvals: who may publish, who may subscribe, and which approvals a change of the registry brings or ends.

exposure        approval of a new pair      a pending one
none            none is needed              ends
auto            GRANTED at once             becomes GRANTED
manual          PENDING until decided       stays
four-eyes       PENDING until two decided   stays

Whom the exposure trusts is GRANTED at once. What was granted or rejected stays until somebody decides otherwise or the pair
ends. A new owner of the subscription or of the topic, or other scopes, start again: the decision was about somebody else, by
somebody else, or about other data. Fewer scopes are not other data, but none at all may be (HOR-41, HOR-42).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import msgspec

from tidings.registry.model import (
    DEFAULT_SCOPE,
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
from tidings.registry.rules.keys import DocumentKey
from tidings.registry.rules.names import fits

Pair = tuple[Name, Name]
"""A subscription and a topic."""


class Approvals(msgspec.Struct, frozen=True):
    """What becomes of approvals when something else changes."""

    puts: tuple[Approval, ...] = ()
    ends: tuple[DocumentKey, ...] = ()


def listed(who: str, patterns: Iterable[str]) -> bool:
    """Whether a caller is on an allow-list; `team-*` lists all whose names begin so."""
    return any(fits(pattern, who) for pattern in patterns)


def may_publish(exposure: Exposure | None, who: str) -> bool:
    """Whether the topic's exposure lets this caller publish; a topic without one is open."""
    return exposure is None or listed(who, exposure.publishers)


def decision(standing: ApprovalState | None, exposure: Exposure, owner: str) -> ApprovalState:
    """What an approval of this owner's subscription is, given what it was (None: new)."""
    if standing in (ApprovalState.GRANTED, ApprovalState.REJECTED):
        return standing
    if exposure.approval is ApprovalMode.AUTO or listed(owner, exposure.trusted):
        return ApprovalState.GRANTED
    return ApprovalState.PENDING


def decided(standing: Approval, mode: ApprovalMode, state: ApprovalState, by: str) -> Approval:
    """The approval after one more said so. Under four eyes the first who grants leaves it pending."""
    if state is not ApprovalState.GRANTED:
        return msgspec.structs.replace(standing, state=state, by=())
    voices = standing.by if by in standing.by else (*standing.by, by)
    needed = 2 if mode is ApprovalMode.FOUR_EYES else 1
    reached = ApprovalState.GRANTED if len(voices) >= needed else ApprovalState.PENDING
    return msgspec.structs.replace(standing, state=reached, by=voices)


def sourced(subscription: Subscription, topics: Collection[Name]) -> list[Name]:
    """Which of these topics the subscription asks for."""
    match subscription.source:
        case TopicsSource(wanted):
            return [topic for topic in wanted if topic in topics]
        case NamespaceSource(namespace):
            return [topic for topic in topics if topic.namespace == namespace]


def approvals_after(before: Snapshot, after: Snapshot, touched: Iterable[DocumentKey]) -> Approvals:
    """The approvals to put and to end once `touched` have changed; `after` holds those changes already."""
    keys = set(touched)
    explicit = {(key.name, key.topic) for key in keys if key.topic is not None}
    puts: list[Approval] = []
    ends: list[DocumentKey] = []
    for pair in sorted(explicit | set(_pairs(before, after, keys))):
        standing = after.approvals.get(pair)
        wanted = _wanted(before, after, pair, fresh=pair not in explicit)
        if wanted is None and standing is not None:
            ends.append(DocumentKey("approval", *pair))
        elif wanted is not None and (standing is None or standing.state is not wanted):
            puts.append(Approval(subscription=pair[0], topic=pair[1], state=wanted))
    return Approvals(tuple(puts), tuple(ends))


def _pairs(before: Snapshot, after: Snapshot, keys: set[DocumentKey]) -> Iterator[Pair]:
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
    offered = before.exposures.get(pair[1], exposure)
    standing = after.approvals.get(pair)
    anew = was is not None and (offered.owner != exposure.owner or _asks_anew(was, subscription, exposure))
    if standing is None or (fresh and anew):
        return decision(None, exposure, subscription.owner)
    return decision(standing.state, exposure, subscription.owner)


def _asks_anew(was: Subscription, now: Subscription, exposure: Exposure) -> bool:
    if was.owner != now.owner or not set(now.scopes) <= set(was.scopes):
        return True
    return bool(was.scopes) and not now.scopes and DEFAULT_SCOPE not in exposure.scopes
