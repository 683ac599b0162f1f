"""What an apply means beyond its documents: other subscriptions that change their state, a new environment. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from tidings.doors.horizon.names import paper_name, subscription_name
from tidings.doors.horizon.views.states import shown_state, state_of, topic_of
from tidings.registry.model import Snapshot

MOST = 100
"""State changes that are told one by one; a type may have thousands of subscriptions."""


def state_changes(before: Snapshot, after: Snapshot, environment: str, told: Collection[str]) -> list[dict[str, Any]]:
    """The subscriptions whose state changes, without those whose ids are `told` already as parts of documents."""
    return list(_changes(before, after, environment, told))


def _changes(before: Snapshot, after: Snapshot, environment: str, told: Collection[str]) -> Iterator[dict[str, Any]]:
    namespace = subscription_name(environment, "").namespace
    for name, one in sorted(after.subscriptions.items()):
        former = before.subscriptions.get(name)
        if name.namespace != namespace or former is None or name.name in told:
            continue
        was, state = state_of(before, former), state_of(after, one)
        if was.word != state.word:
            yield {
                "subscriptionId": name.name,
                "eventType": topic_of(one).name,
                "subscriberId": one.owner,
                "formerState": was.word,
                **shown_state(state),
            }


def is_new(before: Snapshot, environment: str) -> bool:
    """Whether nobody used an environment before."""
    beginning = paper_name(environment, "", "").namespace
    return not any(name.namespace.startswith(beginning) for name in before.papers)


def new_environment(environment: str, others: Collection[str]) -> str:
    """What is said of a new environment; `others` are those that the caller knows."""
    known = ", ".join(sorted(others)[:10])
    return f"the environment {environment} is new: nobody used it before{f' (there is {known})' if known else ''}"
