"""Approvals beside scopes: who is trusted, four eyes, other owners of a topic, blocked subscriptions, kept papers."""

from __future__ import annotations

import msgspec

from tests.builders import a_name, a_subscription, a_topic, an_approval, an_exposure
from tests.registry.worlds import a_world, put, states, without
from tidings.registry.model import ApprovalMode, ApprovalState, Paper
from tidings.registry.rules import decided, routes
from tidings.registry.rules.keys import Version

PAIR = ("billing", "orders")


def test_whom_the_exposure_trusts_needs_no_approval() -> None:
    world = a_world(a_topic(), an_exposure(approval="manual", trusted=("hub--team--*",)), a_subscription(owner="hub--team--a"))
    assert states(world)[PAIR] == "granted"
    assert states(put(world, a_subscription(owner="hub--other--a")))[PAIR] == "pending"


def test_trusting_somebody_later_grants_what_is_pending_and_not_what_was_rejected() -> None:
    asked = a_world(a_topic(), an_exposure(approval="manual"), a_subscription(owner="a"))
    trusting = an_exposure(approval="manual", trusted=("a",))
    assert states(put(asked, trusting))[PAIR] == "granted"
    assert states(put(put(asked, an_approval(state="rejected")), trusting))[PAIR] == "rejected"


def test_four_eyes_are_two_different_ones() -> None:
    pending = an_approval(state="pending")
    first = decided(pending, ApprovalMode.FOUR_EYES, ApprovalState.GRANTED, "anna")
    assert (first.state, first.by) == (ApprovalState.PENDING, ("anna",))
    assert decided(first, ApprovalMode.FOUR_EYES, ApprovalState.GRANTED, "anna").state is ApprovalState.PENDING
    assert decided(first, ApprovalMode.FOUR_EYES, ApprovalState.GRANTED, "bert").state is ApprovalState.GRANTED
    assert decided(pending, ApprovalMode.MANUAL, ApprovalState.GRANTED, "anna").state is ApprovalState.GRANTED
    rejected = decided(first, ApprovalMode.FOUR_EYES, ApprovalState.REJECTED, "bert")
    assert (rejected.state, rejected.by) == (ApprovalState.REJECTED, ())


def test_a_new_owner_of_a_topic_decides_anew() -> None:
    world = a_world(a_topic(), an_exposure(approval="manual", owner="a"), a_subscription(), an_approval())
    assert states(world)[PAIR] == "granted"
    assert states(put(world, an_exposure(approval="manual", owner="a", publishers=("x",))))[PAIR] == "granted"
    assert states(put(world, an_exposure(approval="manual", owner="b")))[PAIR] == "pending"


def test_a_blocked_subscription_stands_without_scope_or_place_on_the_list_and_has_no_route() -> None:
    closed = an_exposure(publishers=(), subscribers=())
    blocked = a_subscription(scopes=("gone",), blocked="nobody exposes it", lane=7)
    assert states(a_world(a_topic(), closed, blocked))[PAIR] == "granted"
    marks = {1: {0: 10}, 2: {0: 20}, 3: {0: 30}}
    topic, exposure = a_topic(number=1), an_exposure()
    free = msgspec.structs.replace(blocked, blocked="", scopes=())
    versions = [Version(topic, 1), Version(exposure, 1), Version(an_approval(), 1)]
    assert routes([*versions, Version(msgspec.structs.replace(free, blocked="x"), 1)], marks) == []  # type: ignore[arg-type]
    found = routes([*versions, Version(free, 1, 2), Version(msgspec.structs.replace(free, blocked="x"), 2)], marks)  # type: ignore[arg-type]
    assert [(route.since, route.until) for route in found] == [({0: 10}, {0: 20})]


def test_a_paper_is_kept_as_it_was_written() -> None:
    paper = Paper(name=a_name("horizon/x/Rover:a"), text={"kind": "Rover", "spec": {"zone": "caas"}})
    world = a_world(paper)
    assert world.snapshot.papers[paper.name] == paper
    assert not without(world, Paper, "horizon/x/Rover:a").snapshot.papers
