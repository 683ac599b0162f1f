"""Puts and endings in one change: judged by what both lead to, one revision, all or nothing."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import a_name, a_subscription, a_topic, an_exposure
from tests.registry.made_up import endings, puts
from tests.registry.worlds import a_world, changed, ending, states
from tidings.errors import Conflict, InvalidDocument, NotFound, Rejected
from tidings.registry.model import Exposure, Snapshot, Subscription, Topic, TopicsSource
from tidings.registry.port import Document, DocumentEnd
from tidings.registry.rules import World, sourced
from tidings.registry.rules.changes import standing
from tidings.registry.rules.keys import WORDS, key_of

TOPIC, BILLING, EXPOSURE = ending(Topic, "orders"), ending(Subscription, "billing"), ending(Exposure, "orders")


def names(world: World) -> tuple[list[str], list[str], list[str]]:
    held = world.snapshot
    return ([str(n) for n in held.topics], [str(n) for n in held.exposures], [str(n) for n in held.subscriptions])


@pytest.mark.parametrize("ends", [[TOPIC, BILLING], [BILLING, TOPIC], [EXPOSURE, TOPIC, BILLING], [TOPIC, TOPIC, BILLING]])
def test_a_topic_ends_together_with_the_subscriptions_that_ask_for_it(ends: list[DocumentEnd]) -> None:
    world = changed(a_world(a_topic(), an_exposure(), a_subscription()), ends=ends)
    assert names(world) == ([], [], [])
    assert states(world) == {}


def test_a_subscription_may_leave_a_topic_in_the_change_that_ends_it() -> None:
    world = a_world(a_topic(), a_topic("b"), a_subscription())
    world = changed(world, [a_subscription("billing", "b")], [TOPIC])
    assert names(world) == (["b"], [], ["billing"])
    assert world.snapshot.subscriptions[a_name("billing")].lane == 1


def test_one_subscription_may_take_the_place_of_another() -> None:
    world = changed(a_world(a_topic(), a_subscription()), [a_subscription("shipping")], [BILLING])
    assert [(str(s.name), s.lane) for s in world.snapshot.subscriptions.values()] == [("shipping", 2)]


def test_a_subscription_may_come_in_the_change_that_ends_the_exposure_which_kept_it_out() -> None:
    world = a_world(a_topic(), an_exposure(subscribers=("ann",)))
    world = changed(world, [a_subscription(owner="bob")], [EXPOSURE])
    assert names(world) == (["orders"], [], ["billing"])


def test_forced_endings_of_several_topics_leave_subscriptions_what_is_left() -> None:
    world = a_world(*(a_topic(name) for name in "abc"), a_subscription("all", "a", "b", "c"), a_subscription("two", "a", "b"))
    world = changed(world, ends=[ending(Topic, "a", force=True), ending(Topic, "b", force=True)])
    assert {str(n): s.source for n, s in world.snapshot.subscriptions.items()} == {"all": TopicsSource((a_name("c"),))}


@pytest.mark.parametrize(
    ("given", "ends", "error"),
    [
        ([], [TOPIC], Conflict),
        ([a_topic("new")], [TOPIC], Conflict),
        ([], [BILLING, ending(Topic, "nowhere")], NotFound),
        ([a_topic("new")], [ending(Topic, "new")], NotFound),
        ([a_topic(description="new")], [TOPIC, BILLING], InvalidDocument),
        ([a_subscription(description="new")], [BILLING], InvalidDocument),
        ([a_subscription(description="new")], [ending(Topic, "orders", force=True)], InvalidDocument),
        ([a_subscription("shipping")], [TOPIC, BILLING], InvalidDocument),
        ([an_exposure()], [TOPIC, BILLING], InvalidDocument),
    ],
)
def test_what_contradicts_itself_is_refused(given: list[Document], ends: list[DocumentEnd], error: type[Exception]) -> None:
    world = a_world(a_topic(), a_topic("b"), a_subscription())
    with pytest.raises(error):
        changed(world, given, ends)


@given(puts, puts, st.lists(endings, max_size=4))
def test_a_change_leads_to_what_was_asked_for_and_leaves_nothing_dangling(
    before: Sequence[Document], given: Sequence[Document], ends: Sequence[DocumentEnd]
) -> None:
    world = a_world(*(a_topic(name) for name in ("a", "b", "x:c")), an_exposure("b"), a_subscription("s", "a", "b"))
    try:
        world = changed(world, before)
        after = changed(world, given, ends).snapshot
    except Rejected:
        return
    assert all(standing(after, key.kind, key.place) is not None for key in map(key_of, given))
    assert all(standing(after, WORDS[one.kind], one.name) is None for one in ends)
    assert is_whole(after)


def is_whole(after: Snapshot) -> bool:
    """Every name that is referred to is there, and exactly the pairs have approvals that need one."""
    wanted = [s.source.topics for s in after.subscriptions.values() if isinstance(s.source, TopicsSource)]
    pairs = {(s.name, topic) for s in after.subscriptions.values() for topic in sourced(s, after.exposures)}
    referred = {*after.exposures, *(topic for topics in wanted for topic in topics)}
    return referred <= after.topics.keys() and after.approvals.keys() == pairs
