"""The circuit breaker of the Horizon door through a running hub. Rows of the test plan, each named by its id."""

from __future__ import annotations

import json
import threading
from datetime import datetime
from itertools import pairwise
from typing import Any

import pytest

from tests.doors.horizon.flows import World, arrived, breaker, posts
from tests.doors.horizon.worlds import a_rover, a_stream
from tests.doors.sse.worlds import Reader
from tests.hub import Hub
from tests.polling import until
from tests.receivers import Answer, Arrival, Receiver

pytestmark = [pytest.mark.hub, pytest.mark.spark]

ONE_TRY = {"maxRetries": 0, "backoffMs": 10, "probeIntervalSeconds": 0.2}
NO_PROBE = {**ONE_TRY, "probeIntervalSeconds": 600}


class Endpoint:
    """Answers posts and probes as it is told at the moment."""

    def __init__(self, post: int = 503, probe: int = 503, get: int = 503) -> None:
        self.post, self.probe, self.get = post, probe, get
        self._lock = threading.Lock()
        self.budget = 1_000_000

    def __call__(self, arrival: Arrival) -> Answer:
        with self._lock:
            if arrival.method == "POST":
                self.budget -= 1
                return Answer(self.post if self.budget >= 0 else 503)
            return Answer(self.get if arrival.method == "GET" else self.probe)


def opened(world: World, subscription: str, count: int = 1) -> list[str]:
    """Publish events until the breaker is open and all of them wait; their ids."""
    ids = world.send(*({"n": n} for n in range(count)))
    until(lambda: breaker(world, subscription)["status"] == "OPEN", "the breaker is open")
    until(lambda: world.statuses(subscription) == dict.fromkeys(ids, "WAITING"), "all of them wait")
    return ids


def closed(world: World, subscription: str) -> None:
    until(lambda: breaker(world, subscription)["status"] == "CLOSED", "the breaker closes")


def delivered(world: World, subscription: str, ids: list[str]) -> None:
    until(lambda: world.statuses(subscription) == dict.fromkeys(ids, "DELIVERED"), "all of them are delivered")


def between(earlier: str, later: str | None) -> float:
    """Seconds from one time to another; 0 where there is no other."""
    return 0.0 if later is None else (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()


def probes(receiver: Receiver) -> list[Arrival]:
    return [one for one in receiver.arrivals if one.method != "POST"]


def test_hor_t25_behind_an_open_breaker_events_wait_and_others_are_served(hub: Hub) -> None:
    with Receiver(Endpoint()) as down, Receiver() as up:
        world = World(hub)
        waiting, served = world.subscribe(down, "down", deliveryPolicy=NO_PROBE), world.subscribe(up, "up")
        first = opened(world, waiting)
        later = world.send({"n": 2}, {"n": 3})
        assert [one["id"] for one in arrived(up, 3)] == [*first, *later]
        delivered(world, served, [*first, *later])
        assert world.statuses(waiting) == dict.fromkeys([*first, *later], "WAITING")
        assert len(posts(down)) == 1
        shown = breaker(world, waiting)
        (origin,) = world.events(waiting, f"?eventId={first[0]}")
        assert (shown["originMessageId"], shown["eventType"], shown["environment"]) == (
            origin["id"],
            "orders.v1",
            world.environment,
        )
        assert shown["lastOpened"] and shown["lastModified"] and shown["loopCounter"] == 0
        listed = world.call("GET", "/horizon/api/v1/circuit-breakers?status=OPEN").json["items"]
        assert waiting in {one["subscriptionId"] for one in listed} and served not in {one["subscriptionId"] for one in listed}
        assert waiting in {one["subscriptionId"] for one in world.call("GET", "/horizon/api/v1/health-checks").json["items"]}


def test_hor_t26_a_probe_that_succeeds_sends_what_waited_and_closes(hub: Hub) -> None:
    well, refusing, getting = Endpoint(), Endpoint(probe=405), Endpoint(probe=405)
    with Receiver(well) as one, Receiver(refusing) as two, Receiver(getting) as three:
        world = World(hub)
        first = world.subscribe(one, "one", deliveryPolicy=ONE_TRY)
        second = world.subscribe(two, "two", deliveryPolicy=ONE_TRY)
        third = world.subscribe(three, "three", deliveryPolicy=ONE_TRY, enforceGetHttpRequestMethodForHealthCheck=True)
        ids = opened(world, first, 5)
        for name in (second, third):
            until(lambda name=name: breaker(world, name)["status"] == "OPEN", "the breaker is open")
        well.post = refusing.post = getting.post = 204
        well.probe = getting.get = 200
        for name in (first, third):
            delivered(world, name, ids)
            closed(world, name)
        # The first that waited is the first that is sent.
        assert json.loads(posts(one)[-5].body)["id"] == ids[0]
        looked = len(probes(two))
        until(lambda: len(probes(two)) > looked + 1, "the endpoint that refuses HEAD is asked again")
        assert breaker(world, second)["status"] == "OPEN" and breaker(world, second)["lastProbe"]["code"] == 405
        assert world.statuses(second) == dict.fromkeys(ids, "WAITING")
        assert {arrival.method for arrival in probes(three)} == {"GET"} and {arrival.method for arrival in probes(two)} == {
            "HEAD"
        }
        probe = probes(one)[0].headers
        assert (probe["x-pubsub-publisher-id"], probe["x-pubsub-subscriber-id"]) == ("hub--team--shop", "hub--team--one")
        assert probe["authorization"].startswith("Bearer ey") and "content-length" not in probe
        assert world.call("PUT", f"/horizon/api/v1/circuit-breakers/close/{second}").json["status"] == "CLOSED"
        delivered(world, second, ids)


def test_hor_t27_who_keeps_failing_after_good_probes_waits_longer_each_time(hub: Hub) -> None:
    endpoint = Endpoint(probe=200)
    with Receiver(endpoint) as receiver:
        world = World(hub)
        subscription = world.subscribe(receiver, deliveryPolicy=ONE_TRY)
        (first,), new = world.send({"n": 1}), list[str]()
        postponed: dict[int, float] = {}

        def all_sent() -> bool:
            shown = breaker(world, subscription)
            if shown["status"] == "REPUBLISHING":
                postponed[shown["loopCounter"]] = between(shown["lastProbe"]["time"], shown["postponedUntil"])
            if shown.get("loopCounter") == 4 and not new:
                endpoint.post = 200
                new.extend(world.send({"n": 2}))
            return len(posts(receiver)) >= 6

        until(all_sent, "six posts")
        delivered(world, subscription, [first, *new])
        sent = [(json.loads(one.body)["id"], one.at) for one in posts(receiver)]
        waits = [later - sooner for sooner, later in pairwise(at for id, at in sent if id == first)]
        # Each a probe's interval and the wait of the loop.
        assert all(wait >= low for low, wait in zip((0.0, 2.0, 4.0, 8.0), waits, strict=True)), waits
        assert {1: 0.0, **postponed} == {1: 0.0, 2: 2.0, 3: 4.0, 4: 8.0}
        # New events do not wait for what waited (HOR-126).
        assert [id for id, _ in sent] == [*[first] * 4, *new, first]
        closed(world, subscription)
        assert breaker(world, subscription)["loopCounter"] == 4


def test_hor_t28_what_waited_is_sent_no_faster_than_asked_for(hub: Hub) -> None:
    endpoint = Endpoint()
    with Receiver(endpoint) as receiver:
        world = World(hub)
        subscription = world.subscribe(receiver, deliveryPolicy=ONE_TRY, redeliveriesPerSecond=5)
        ids = opened(world, subscription, 20)
        before = len(posts(receiver))
        endpoint.post = endpoint.probe = 200
        delivered(world, subscription, ids)
        at = [one.at for one in posts(receiver)[before:]]
        assert len(at) == 20
        # At most five in any second, as they leave: the last ones leave after three seconds, and arrive as they can.
        assert 2.5 <= at[-1] - at[0] < 30
        closed(world, subscription)


def test_hor_t29_what_waited_is_streamed_after_a_change_to_a_stream(hub: Hub) -> None:
    with Receiver(Endpoint()) as receiver:
        world = World(hub)
        subscription = world.subscribe(receiver, deliveryPolicy=NO_PROBE)
        ids = opened(world, subscription, 3)
        (part,) = world.parts(a_rover("bill", subscriptions=[a_stream()]))
        assert (part["subscriptionId"], part["state"]) == (subscription, "ACTIVE")
        until(lambda: world.statuses(subscription) == dict.fromkeys(ids, "PROCESSED"), "they are for the stream")
        lines = Reader(hub, f"/horizon/v1/{world.environment}/sse/{subscription}?maxNumber=3").answer().body.splitlines()
        assert [json.loads(line)["id"] for line in lines] == ids
        delivered(world, subscription, ids)
        # And back: what nobody read is sent to the callback (HOR-131).
        unread = world.send({"n": 4}, {"n": 5})
        receiver.script = [Answer(200)]
        world.subscribe(receiver)
        delivered(world, subscription, [*ids, *unread])
        assert [json.loads(one.body)["id"] for one in posts(receiver)[-2:]] == unread


def test_hor_t42_who_fails_while_what_waited_is_sent_is_waited_for_again(hub: Hub) -> None:
    endpoint = Endpoint()
    with Receiver(endpoint) as receiver:
        world = World(hub)
        policy: dict[str, Any] = {"deliveryPolicy": ONE_TRY, "redeliveriesPerSecond": 10}
        subscription = world.subscribe(receiver, **policy)
        ids = opened(world, subscription, 8)
        # Three are taken, the fourth fails: its retries are used up at once. The endpoint says no to probes from then on.
        endpoint.budget, endpoint.post, endpoint.probe = 3, 200, 200
        until(lambda: endpoint.budget < 3, "what waited is sent")
        endpoint.probe = 503
        until(lambda: endpoint.budget < 0 and breaker(world, subscription)["status"] == "OPEN", "it is open again")
        until(lambda: list(world.statuses(subscription).values()).count("WAITING") == 5, "the unsent rest waits")
        assert list(world.statuses(subscription).values()).count("DELIVERED") == 3
        endpoint.budget, endpoint.probe = 100, 201
        delivered(world, subscription, ids)
        closed(world, subscription)


@pytest.mark.parametrize(("code", "closes"), [(200, True), (201, True), (204, True), (202, True), (404, False), (301, False)])
def test_hor_t50_answers_to_probes(hub: Hub, code: int, closes: bool) -> None:
    endpoint = Endpoint()
    with Receiver(endpoint) as receiver:
        world = World(hub)
        subscription = world.subscribe(receiver, deliveryPolicy=ONE_TRY)
        ids = opened(world, subscription)
        endpoint.post, endpoint.probe = 200, code
        if closes:
            delivered(world, subscription, ids)
            closed(world, subscription)
        else:
            until(lambda: (breaker(world, subscription)["lastProbe"] or {}).get("code") == code, "it was probed")
            assert (breaker(world, subscription)["status"], world.statuses(subscription)) == ("OPEN", {ids[0]: "WAITING"})


def test_changes_hold_for_what_waits(hub: Hub) -> None:
    """HOR-44, HOR-132: a new address is probed and gets what waited; without a breaker what waits is sent now."""
    with Receiver(Endpoint()) as old, Receiver() as new:
        world = World(hub)
        moved = world.subscribe(old, "moved", deliveryPolicy=ONE_TRY)
        out = world.subscribe(None, "out", callback=f"{old.url}/out", deliveryPolicy=NO_PROBE)
        ids = opened(world, moved)
        until(lambda: breaker(world, out)["status"] == "OPEN", "the breaker is open")
        world.subscribe(new, "moved", deliveryPolicy=ONE_TRY)
        delivered(world, moved, ids)
        closed(world, moved)
        assert {one.method for one in new.arrivals} == {"HEAD", "POST"}
        old.script = [Answer(200)]
        world.subscribe(None, "out", callback=f"{old.url}/out", deliveryPolicy=NO_PROBE, circuitBreakerOptOut=True)
        delivered(world, out, ids)
        closed(world, out)
        # A breaker without subscription is removed (HOR-130).
        world.applied(a_rover("out", subscriptions=[]))
        assert world.call("GET", f"/horizon/api/v1/circuit-breakers/{out}").status == 404


def test_subscriptions_of_one_address_share_a_probe_but_not_between_environments(hub: Hub) -> None:
    with Receiver(Endpoint()) as receiver:
        one, other = World(hub), World(hub)
        names = [one.subscribe(receiver, "a", deliveryPolicy=ONE_TRY), one.subscribe(receiver, "b", deliveryPolicy=ONE_TRY)]
        alone = other.subscribe(receiver, "a", deliveryPolicy=ONE_TRY)
        one.send({"n": 1})
        other.send({"n": 1})
        for world, name in ((one, names[0]), (one, names[1]), (other, alone)):
            until(lambda world=world, name=name: (breaker(world, name).get("lastProbe")) is not None, "it is probed")
        before = len(probes(receiver))
        until(lambda: len(probes(receiver)) >= before + 20, "twenty probes")
        asked = [arrival.headers["x-subscription-id"] for arrival in probes(receiver)[before:]]
        # Two addresses to ask: each about as often as the other, and one subscription speaks for both of its environment.
        assert asked.count(alone) >= 5 and len(set(asked)) == 2
