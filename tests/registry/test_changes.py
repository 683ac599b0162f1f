"""What changes come to: numbers, references, deletions, approvals."""

import msgspec
import pytest
from msgspec.structs import replace

from tests.builders import a_filter, a_name, a_subscription, a_topic, an_approval, an_exposure
from tests.registry.worlds import a_world, put, states, without
from tidings.clock import Instant
from tidings.errors import Conflict, Forbidden, InvalidDocument, NotFound
from tidings.log.position import embedded
from tidings.registry.model import Approval, Exposure, LaneFill, NamespaceSource, Subscription, Topic, TopicsSource
from tidings.registry.rules import may_publish, plan_change

ORDERS, BILLING = a_name("orders"), a_name("billing")
PAIR = ("billing", "orders")


def test_numbers_rise_and_stay_with_their_document() -> None:
    world = a_world(a_topic("a"), a_topic("b"), a_topic("a", description="new"))
    assert [(str(t.name), t.number) for t in world.snapshot.topics.values()] == [("a", 1), ("b", 2)]


def test_a_topic_made_again_gets_another_number() -> None:
    world = put(without(a_world(a_topic("a"), a_topic("b")), Topic, "b"), a_topic("b"))
    assert world.snapshot.topics[a_name("b")].number == 3


def test_a_subscription_made_again_gets_another_lane() -> None:
    world = a_world(a_topic(), a_subscription())
    again = put(without(world, Subscription, "billing"), a_subscription())
    assert (world.snapshot.subscriptions[BILLING].lane, again.snapshot.subscriptions[BILLING].lane) == (1, 2)


def test_a_replaced_subscription_keeps_lane_and_creation() -> None:
    world = put(a_world(a_topic()), a_subscription(), at=5)
    replaced = put(world, a_subscription(description="x"), at=9).snapshot.subscriptions[BILLING]
    assert (replaced.lane, replaced.created, replaced.description) == (1, 5, "x")


def test_every_filling_that_is_asked_for_gets_the_next_number_and_stays_when_nothing_is_said_of_it() -> None:
    wanted = LaneFill.beyond(embedded(7))
    world = put(a_world(a_topic()), a_subscription(fill=wanted))
    first = world.snapshot.subscriptions[BILLING]
    assert first.fill == replace(LaneFill.beyond(embedded(7)), number=1)
    for document in (a_subscription(description="x"), first):
        kept = put(world, document)
        assert kept.snapshot.subscriptions[BILLING].fill == first.fill
    again = put(kept, a_subscription(fill=LaneFill.beyond(embedded(0))))
    assert again.snapshot.subscriptions[BILLING].fill == replace(LaneFill.beyond(embedded(0)), number=2)
    assert again.snapshot.subscriptions[BILLING].lane == first.lane


def test_numbers_that_a_caller_makes_up_do_not_count() -> None:
    world = a_world(a_topic(number=77), a_subscription(lane=88, created=99))
    assert world.snapshot.topics[ORDERS].number == 1
    assert world.snapshot.subscriptions[BILLING].lane == 1
    assert world.snapshot.subscriptions[BILLING].created == 1


def test_what_stands_already_is_no_change() -> None:
    world = a_world(a_topic(labels={"a": "1", "b": "2"}), a_subscription())
    plan = plan_change(world, [a_topic(labels={"b": "2", "a": "1"}), a_subscription()], [], Instant(7))
    assert (plan.puts, plan.ends, plan.numbers) == ((), (), world.numbers)


@pytest.mark.parametrize(("before", "after"), [({"x": True}, {"x": 1}), ({"x": 1}, {"x": 1.0})])
def test_a_filter_on_true_is_another_than_one_on_1(before: object, after: object) -> None:
    world = a_world(a_topic(), a_subscription(filter=a_filter(before)))
    assert plan_change(world, [a_subscription(filter=a_filter(after))], [], Instant(7)).puts


def test_a_topic_and_its_subscription_come_together() -> None:
    world = put(a_world(), a_subscription(), a_topic())
    assert BILLING in world.snapshot.subscriptions


@pytest.mark.parametrize(
    ("document", "path"),
    [
        (a_subscription("s", "orders", "nope"), "source.topics[1]"),
        (an_exposure("nope"), "topic"),
        (an_approval("billing", "nope"), "topic"),
        (an_approval("nope", "orders"), "subscription"),
        (an_approval("billing", "others"), "topic"),
        (an_approval("billing", "orders"), "topic"),
    ],
)
def test_what_refers_to_nothing_is_refused(document: Topic, path: str) -> None:
    world = a_world(a_topic(), a_topic("others"), an_exposure("others"), a_subscription())
    with pytest.raises(InvalidDocument) as refused:
        put(world, a_topic("fine"), document)
    assert path in [fault.attribute for fault in refused.value.faults]
    assert {fault.index for fault in refused.value.faults} == {1}


def test_the_same_document_twice_in_one_change_is_refused() -> None:
    with pytest.raises(InvalidDocument, match="2 times"):
        put(a_world(), a_topic(), a_topic(description="other"))


def test_a_topic_with_subscriptions_is_not_deleted_and_they_are_named() -> None:
    world = a_world(a_topic(), *(a_subscription(f"s{n}") for n in range(7)))
    with pytest.raises(Conflict, match="s0, s1, s2, s3, s4 and 2 more"):
        without(world, Topic, "orders")


def test_a_namespace_subscription_does_not_keep_a_topic() -> None:
    world = a_world(a_topic(), a_subscription(source=NamespaceSource("default")))
    assert not without(world, Topic, "orders").snapshot.topics


def test_a_forced_deletion_takes_along_what_cannot_stand_without_the_topic() -> None:
    world = a_world(
        a_topic(),
        a_topic("b"),
        an_exposure(),
        an_exposure("b"),
        a_subscription("one", "orders"),
        a_subscription("two", "b", "orders"),
    )
    world = without(world, Topic, "orders", force=True)
    assert list(world.snapshot.subscriptions) == [a_name("two")]
    assert world.snapshot.subscriptions[a_name("two")].source == TopicsSource((a_name("b"),))
    assert world.snapshot.subscriptions[a_name("two")].lane == 2
    assert list(world.snapshot.exposures) == [a_name("b")]
    assert set(states(world)) == {("two", "b")}


@pytest.mark.parametrize("kind", [Topic, Exposure, Subscription])
def test_what_is_not_there_cannot_be_deleted(kind: type[Topic]) -> None:
    with pytest.raises(NotFound):
        without(a_world(), kind, "orders")


def test_an_approval_is_decided_not_deleted() -> None:
    with pytest.raises(Conflict):
        without(a_world(a_topic(), an_exposure(), a_subscription()), Approval, "billing")


def test_a_topic_without_exposure_needs_no_approval() -> None:
    assert states(a_world(a_topic(), a_subscription())) == {}


@pytest.mark.parametrize(("mode", "state"), [("auto", "granted"), ("manual", "pending")])
@pytest.mark.parametrize("exposure_first", [True, False])
def test_the_exposure_says_how_a_subscription_is_approved(mode: str, state: str, exposure_first: bool) -> None:
    parts = [an_exposure(approval=mode), a_subscription()]
    assert states(a_world(a_topic(), *parts[:: 1 if exposure_first else -1])) == {PAIR: state}


def test_a_pending_approval_is_granted_when_the_exposure_turns_auto() -> None:
    world = a_world(a_topic(), an_exposure(approval="manual"), a_subscription())
    assert states(put(world, an_exposure(approval="auto"))) == {PAIR: "granted"}


@pytest.mark.parametrize("state", ["granted", "rejected"])
def test_a_decision_outlives_changes_of_the_exposure_and_the_subscription(state: str) -> None:
    world = a_world(a_topic(), an_exposure(approval="manual"), a_subscription(), an_approval(state=state))
    world = put(world, an_exposure(approval="auto"))
    world = put(world, a_subscription(description="new"), a_topic(description="new"))
    assert states(put(world, an_exposure(approval="manual"))) == {PAIR: state}


def test_a_new_owner_of_a_subscription_is_approved_anew() -> None:
    world = a_world(a_topic(), an_exposure(approval="manual"), a_subscription(owner="ann"), an_approval())
    assert states(put(world, a_subscription(owner="bob"))) == {PAIR: "pending"}


def test_approvals_end_with_subscription_exposure_or_source() -> None:
    world = a_world(a_topic(), a_topic("b"), an_exposure(), a_subscription())
    assert states(world) == {PAIR: "granted"}
    assert states(without(world, Subscription, "billing")) == {}
    assert states(without(world, Exposure, "orders")) == {}
    assert states(put(world, a_subscription("billing", "b"))) == {}


def test_a_namespace_subscription_is_approved_topic_by_topic() -> None:
    world = a_world(a_subscription(source=NamespaceSource("default")), a_topic("a"), a_topic("b"), a_topic("x:c"))
    world = put(world, an_exposure("a"), an_exposure("b", "manual"), an_exposure("x:c"))
    assert states(world) == {("billing", "a"): "granted", ("billing", "b"): "pending"}


def test_whoever_is_not_listed_may_not_subscribe() -> None:
    world = a_world(a_topic(), an_exposure(subscribers=("team-*", "ann")))
    for owner in ("team-x", "ann"):
        put(world, a_subscription(owner=owner))
    with pytest.raises(Forbidden, match="bob may not subscribe to orders"):
        put(world, a_subscription(owner="bob"))


def test_a_namespace_subscription_leaves_out_topics_that_do_not_list_it() -> None:
    world = a_world(a_topic(), an_exposure(subscribers=("ann",)))
    put(world, a_subscription(owner="bob", source=NamespaceSource("default")))


def test_a_refused_change_changes_nothing() -> None:
    world = a_world(a_topic())
    with pytest.raises(InvalidDocument):
        put(world, a_topic("b"), a_subscription("s", "nope"))
    assert world == a_world(a_topic())


def test_publishers_are_listed_by_the_exposure() -> None:
    assert may_publish(None, "anybody")
    assert may_publish(an_exposure(), "anybody")
    assert may_publish(an_exposure(publishers=("shop-*",)), "shop-1")
    assert not may_publish(an_exposure(publishers=("shop-*",)), "till")
    assert not may_publish(an_exposure(publishers=()), "shop-1")


def test_a_snapshot_in_hand_is_not_changed_by_a_later_change() -> None:
    before = a_world(a_topic(), an_exposure(), a_subscription())
    copy = msgspec.structs.replace(
        before.snapshot, topics=dict(before.snapshot.topics), approvals=dict(before.snapshot.approvals)
    )
    without(before, Topic, "orders", force=True)
    assert before.snapshot == copy
