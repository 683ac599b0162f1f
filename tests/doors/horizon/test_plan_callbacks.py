"""Callbacks of the Horizon door through a running hub: answers, retries, payloads. Rows of the test plan, each named by its id."""

from __future__ import annotations

import itertools
import json
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from tests.doors.horizon.flows import World, arrived, breaker, posts
from tests.doors.horizon.worlds import a_horizon_event, a_rover, an_entry
from tests.hub import Hub, free_port
from tests.polling import until
from tests.receivers import Answer, Arrival, Receiver
from tidings.client import ExpectedToken, verify_horizon_token

pytestmark = [pytest.mark.hub, pytest.mark.spark]

QUICK = {"maxRetries": 2, "backoffMs": 20, "probeIntervalSeconds": 600}
RETRYABLE = (401, 429, 502, 503, 504)
ITEMS = {"items": [{"name": "x", "v": 1}, {"name": "y", "v": 2}]}


def by_path(arrival: Arrival) -> Answer:
    """The answer that the address names: …/503."""
    status = int(arrival.path.rpartition("/")[2])
    return Answer(status, {"location": "/elsewhere"} if status // 100 == 3 else {})


def tries(receiver: Receiver, path: str) -> list[Arrival]:
    return [one for one in posts(receiver) if one.path.endswith(f"/{path}")]


def told(world: World, subscription: str, event: str) -> dict[str, Any]:
    """The status data of one event, with its history."""
    (one,) = world.events(subscription, f"?eventId={event}")
    found: dict[str, Any] = world.call(
        "GET", f"/horizon/v1/{world.environment}/subscriptions/{subscription}/events/{one['id']}"
    ).json
    return found


def test_hor_t14_arrays_stay_arrays_whatever_is_included_or_excluded(hub: Hub) -> None:
    triggers: dict[str, tuple[dict[str, Any], Any]] = {
        "one": ({"responseFilter": ["items.0.name"]}, {"items": [{"name": "x"}]}),
        "all": ({"responseFilter": ["items.*.name"]}, {"items": [{"name": "x"}, {"name": "y"}]}),
        "path": (
            {"responseFilter": ["$.items[*].name"], "responseFilterSyntax": "jsonpath"},
            {"items": [{"name": "x"}, {"name": "y"}]},
        ),
        "less": ({"responseFilter": ["items.0"], "responseFilterMode": "EXCLUDE"}, {"items": [{"name": "y", "v": 2}]}),
        "no-v": (
            {"responseFilter": ["items.*.v"], "responseFilterMode": "exclude"},
            {"items": [{"name": "x"}, {"name": "y"}]},
        ),
    }
    roots: dict[str, list[Any]] = {"one": [[], {}], "less": [ITEMS["items"], 7]}
    with Receiver() as receiver:
        world = World(hub)
        for name, (trigger, _) in triggers.items():
            world.subscribe(None, name, callback=f"{receiver.url}/{name}", trigger=trigger)
        world.send(ITEMS, ITEMS["items"], 7)
        arrived(receiver, 3 * len(triggers))
        for name, (_, left) in triggers.items():
            got = [json.loads(one.body)["data"] for one in tries(receiver, name)]
            assert len(got) == 3 and left in got, (name, got)
            assert all(root in got for root in roots.get(name, [])), (name, got)


def test_hor_t21_an_answer_is_final_whether_it_says_yes_or_no(hub: Hub) -> None:
    with Receiver(by_path) as receiver:
        world = World(hub)
        answers = {204: None, 200: None, 201: None, 202: None, 404: 404, 500: 500, 302: 302, 400: 400}
        names = {one: world.subscribe(None, f"s{one}", callback=f"{receiver.url}/{one}") for one in answers}
        (event,) = world.send({"n": 1})
        for status, failure in answers.items():
            wanted = "FAILED" if failure else "DELIVERED"
            until(lambda name=names[status], wanted=wanted: world.statuses(name) == {event: wanted}, f"{status} is {wanted}")
            assert len(tries(receiver, str(status))) == 1
            assert breaker(world, names[status])["status"] == "CLOSED"
            shown = told(world, names[status], event)
            assert shown.get("errorType") == (f"HttpStatus{failure}" if failure else None)
            assert bool(shown.get("errorMessage")) is bool(failure)
        # Redirects are not followed (HOR-114).
        assert not [one for one in receiver.arrivals if one.path == "/elsewhere"]


def test_hor_t22_retries_are_used_up_and_the_breaker_opens_unless_it_is_not_wanted(hub: Hub) -> None:
    with Receiver(by_path) as receiver:
        world = World(hub)
        waiting, failing = {}, {}
        for one in RETRYABLE:
            waiting[one] = world.subscribe(None, f"w{one}", callback=f"{receiver.url}/w/{one}", deliveryPolicy=QUICK)
            failing[one] = world.subscribe(
                None, f"f{one}", callback=f"{receiver.url}/f/{one}", deliveryPolicy=QUICK, circuitBreakerOptOut=True
            )
        (event,) = world.send({"n": 1})
        for one in RETRYABLE:
            until(lambda name=waiting[one]: breaker(world, name)["status"] == "OPEN", f"the breaker opens by {one}")
            assert world.statuses(waiting[one]) == {event: "WAITING"}
            until(lambda name=failing[one]: world.statuses(name) == {event: "FAILED"}, f"it failed by {one}")
            assert breaker(world, failing[one])["status"] == "CLOSED"
            assert told(world, failing[one], event)["errorType"] == f"HttpStatus{one}"
            assert (len(tries(receiver, f"w/{one}")), len(tries(receiver, f"f/{one}"))) == (3, 3)


def test_hor_t22_other_codes_are_retried_where_a_subscription_says_so(hub: Hub) -> None:
    with Receiver(by_path) as receiver:
        world = World(hub)
        codes = {"retryableStatusCodes": [404], "deliveryPolicy": {**QUICK, "successStatusCodes": [205]}}
        names = {
            one: world.subscribe(None, f"s{one}", callback=f"{receiver.url}/{one}", **codes) for one in (404, 503, 205, 200)
        }
        (event,) = world.send({"n": 1})
        wanted = {404: ("WAITING", 3), 503: ("FAILED", 1), 205: ("DELIVERED", 1), 200: ("FAILED", 1)}
        for status, (word, count) in wanted.items():
            until(lambda name=names[status], word=word: world.statuses(name) == {event: word}, f"{status} is {word}")
            assert len(tries(receiver, str(status))) == count


def test_hor_t23_a_refused_connection_is_tried_again_after_doubling_waits(hub: Hub) -> None:
    port = free_port()
    world = World(hub)
    subscription = world.subscribe(None, callback=f"http://127.0.0.1:{port}/in")
    (event,) = world.send({"n": 1})
    until(lambda: (world.events(subscription) or [{}])[0].get("attempts", 0) >= 4, "four attempts")
    assert world.statuses(subscription) == {event: "DELIVERING"}
    with Receiver(port=port) as receiver:
        arrived(receiver, 1)
        until(lambda: world.statuses(subscription) == {event: "DELIVERED"}, "it is delivered")
    history = told(world, subscription, event)["history"][::-1]
    assert {one["errorType"] for one in history[:-1]} == {"ConnectException"}
    at = [datetime.fromisoformat(one["timestamp"]) for one in history]
    waits = [(later - sooner).total_seconds() for sooner, later in itertools.pairwise(at)]
    assert all(wait >= 0.1 * 2**n - 0.005 for n, wait in enumerate(waits)), waits
    assert len(waits) >= 4


def test_hor_t24_retry_after_names_the_earliest_time(hub: Hub) -> None:
    date = (datetime.now(UTC) + timedelta(seconds=3)).replace(microsecond=0)
    asked = {"seconds": "2", "date": format_datetime(date, usegmt=True), "nonsense": "abc", "negative": "-5", "past": "0"}
    seen: set[str] = set()

    def once(arrival: Arrival) -> Answer:
        name = arrival.path.rpartition("/")[2]
        if name in seen:
            return Answer()
        seen.add(name)
        return Answer(503, {"retry-after": asked[name]})

    with Receiver(once) as receiver:
        world = World(hub)
        for name in asked:
            world.subscribe(None, name, callback=f"{receiver.url}/{name}")
        world.send({"n": 1})
        arrived(receiver, 2 * len(asked))
        waits = {name: second.at - first.at for name in asked for first, second in [tries(receiver, name)]}
        assert waits["seconds"] >= 2
        wall = time.time() - time.monotonic()
        assert tries(receiver, "date")[1].at + wall >= date.timestamp() - 0.01
        assert all(0.09 <= waits[name] < 30 for name in ("nonsense", "negative", "past")), waits


def test_hor_t45_text_that_is_no_json_is_delivered_unless_somebody_filters(hub: Hub) -> None:
    with Receiver() as plain, Receiver() as filtered:
        world = World(hub)
        everything = world.subscribe(plain, "plain")
        some = world.subscribe(filtered, "some", trigger={"advancedSelectionFilter": {"ne": {"field": "a", "value": 1}}})
        (text,) = world.send("not { json", datacontenttype="text/plain")
        (broken,) = world.send("not { json")
        (parsed,) = world.send('{"a": 2}')
        # Nothing is said about the order in which they arrive.
        came = {one["id"]: one["data"] for one in arrived(plain, 3)}
        assert came == {text: "not { json", broken: "not { json", parsed: '{"a": 2}'}
        assert [(one["id"], one["data"]) for one in arrived(filtered, 1)] == [(parsed, {"a": 2})]
        dropped = world.events(some, "?status=DROPPED")
        results = {one["event"]["id"]: one["properties"]["selectionFilterResult"] for one in dropped}
        assert results == {text: "INVALID_PAYLOAD_ERROR", broken: "INVALID_PAYLOAD_ERROR"}
        until(lambda: set(world.statuses(everything).values()) == {"DELIVERED"}, "all is delivered")


def test_hor_t46_neither_a_costly_expression_nor_a_dead_consumer_holds_up_another(hub: Hub) -> None:
    with Receiver([Answer(hang=True)]) as dead, Receiver() as healthy:
        world = World(hub)
        world.subscribe(dead, "dead")
        world.subscribe(healthy, "healthy")
        costly = {"advancedSelectionFilter": {"rx": {"field": "$.text", "value": "(a+)+$"}}}
        never = world.subscribe(None, "costly", callback=f"{healthy.url}/never", trigger=costly)
        ids = world.send(*({"n": n, "text": "a" * 5000 + "!"} for n in range(60)))
        assert {one["id"] for one in arrived(healthy, 60)} == set(ids)
        # Its own share of connections and no more (HOR-121, HOR-162).
        assert 1 <= len(posts(dead)) <= 50
        dropped = world.events(never, "?status=DROPPED&limit=1")
        assert dropped[0]["properties"]["selectionFilterTrace"]["causeDescription"] == "Actual value did not match regex."
        assert not tries(healthy, "never")


def test_hor_t50_the_token_names_the_zone_of_the_consumer_and_passes_the_six_checks(hub: Hub) -> None:
    with Receiver() as receiver:
        world = World(hub)
        (part,) = world.parts(a_rover("bill", zone="AWS", subscriptions=[an_entry(callback=receiver.url)]))
        assert part["state"] == "ACTIVE"
        world.send({"n": 1})
        arrived(receiver, 1)
        token = posts(receiver)[0].headers["authorization"]
        found = hub.call("GET", "/.well-known/openid-configuration").json
        keys = hub.call("GET", "/.well-known/jwks.json").json
        shop = "hub--team--shop"
        expected = ExpectedToken(issuers=[found["issuer"]], publishers=[shop], subscriber="hub--team--bill", zone="aws")
        assert verify_horizon_token(token, keys, expected)["requestPath"] == "/horizon-aws/callback/v1"


def test_the_callback_is_the_event_with_the_headers_of_the_documents_and_no_others_twice(hub: Hub) -> None:
    with Receiver() as receiver:
        world = World(hub)
        subscription = world.subscribe(receiver)
        event = a_horizon_event(subject="unknown", dataschema="http://x", source="x y", datacontenttype=None)
        sent = {"user_agent": "curl/8", "x_pubsub_publisher_id": "forged", "x_event_id": "forged", "accept_language": "de"}
        assert world.publish(event, **sent).status == 201
        arrived(receiver, 1)
        (arrival,) = posts(receiver)
        wanted = {name: event[name] for name in ("id", "type", "source", "specversion", "data")}
        body = json.loads(arrival.body)
        # HOR-108: null members are left out, unknown ones are not delivered (HOR-50), the time is the hub's (HOR-53).
        assert {**wanted, "time": body["time"]} == body
        assert arrival.headers["content-type"] == arrival.headers["accept"] == "application/json"
        assert arrival.headers["accept-charset"] == "UTF-8"
        assert arrival.headers["x-pubsub-publisher-id"] == "hub--team--shop"
        assert (arrival.headers["x-event-id"], arrival.headers["x-subscription-id"]) == (event["id"], subscription)
        assert arrival.headers["user-agent"] == "curl/8" and "accept-language" not in arrival.headers
        assert sorted(set(arrival.names)) == sorted(arrival.names)
