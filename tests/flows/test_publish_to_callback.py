"""Whole flows over HTTP only, against a hub that really runs: publish, route on Spark, push to a callback."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from tests.hub import Hub
from tests.polling import until
from tests.receivers import Answer, Receiver

pytestmark = [pytest.mark.hub, pytest.mark.spark]


def fresh(prefix: str) -> str:
    return f"{prefix}-{uuid.uuid4().hex[:8]}"


def create(hub: Hub, path: str, body: dict[str, Any]) -> None:
    answer = hub.call("PUT", path, body)
    assert answer.status in (200, 201), answer.body


def a_topic(hub: Hub, **fields: Any) -> str:
    name = fresh("orders")
    create(hub, f"/api/topics/{name}", fields)
    return name


def subscribed(hub: Hub, topic: str, receiver: Receiver, **fields: Any) -> str:
    name = fresh(f"sub-{topic.replace(':', '-')}")
    create(hub, f"/api/subscriptions/{name}", {"topic": topic, "to": receiver.url, **fields})
    return name


def publish(hub: Hub, topic: str, *datas: Any) -> None:
    for data in datas:
        answer = hub.call("POST", f"/api/topics/{topic}/events", data)
        assert answer.status == 202, answer.body


def payloads(receiver: Receiver) -> list[Any]:
    return [json.loads(arrival.body)["data"] for arrival in receiver.arrivals]


def routed_and_delivered(hub: Hub, topic: str) -> bool:
    """Everything is routed, and what came for the subscriptions of this topic is final; other tests have lanes of their own."""
    status = hub.call("GET", "/api/status").json
    lanes = [one["lag"] for one in status["subscriptions"] if one["name"].startswith(f"sub-{topic}-")]
    return bool(status["lag"]["routing"]["events"] == 0 and not any(lanes))


def test_a_published_event_arrives_as_a_cloudevent(hub: Hub) -> None:
    with Receiver() as receiver:
        topic = a_topic(hub)
        subscribed(hub, topic, receiver)
        publish(hub, topic, {"total": 5})
        arrival = receiver.wait_for(1, 30)[0]

    event = json.loads(arrival.body)
    assert arrival.headers["content-type"] == "application/cloudevents+json; charset=utf-8"
    assert event["data"] == {"total": 5}
    assert event["specversion"] == "1.0"
    assert {"id", "source", "type", "time"} <= event.keys()


def test_payload_bytes_arrive_exactly_as_published_in_binary_form(hub: Hub) -> None:
    body = b'{ "b": 1.0,\n  "a": 100000000000000000001, "e": 1e400 }'
    headers = {
        "content-type": "application/json",
        "ce-specversion": "1.0",
        "ce-id": "42",
        "ce-source": "/shop",
        "ce-type": "order.created",
        "ce-subject": "Euro%20%E2%82%AC",
        "ce-myext": "x",
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    }
    with Receiver() as receiver:
        topic = a_topic(hub)
        subscribed(hub, topic, receiver, to=None, delivery={"url": receiver.url, "mode": "binary"})
        assert hub.call("POST", f"/api/topics/{topic}/events", body, headers).status == 202
        arrival = receiver.wait_for(1, 30)[0]

    assert arrival.body == body
    assert {name: arrival.headers.get(name) for name in headers} == headers


def test_a_filter_lets_through_only_what_matches(hub: Hub) -> None:
    with Receiver() as picky, Receiver() as all_of_it:
        topic = a_topic(hub)
        subscribed(hub, topic, picky, where='total.amount >= 100 and region in ("EU", "UK")')
        subscribed(hub, topic, all_of_it)
        events = [
            {"total": {"amount": 99}, "region": "EU"},
            {"total": {"amount": 100}, "region": "EU"},
            {"total": {"amount": 500}, "region": "US"},
            {"region": "UK"},
            {"total": {"amount": 101.5}, "region": "UK"},
        ]
        publish(hub, topic, *events)
        all_of_it.wait_for(5, 30)
        until(lambda: routed_and_delivered(hub, topic))

    assert sorted(payloads(picky), key=str) == sorted([events[1], events[4]], key=str)


def test_a_subscription_gets_what_came_after_its_creation_and_nothing_before(hub: Hub) -> None:
    with Receiver() as receiver:
        topic = a_topic(hub)
        publish(hub, topic, {"n": 1})
        subscribed(hub, topic, receiver)
        publish(hub, topic, {"n": 2})
        receiver.wait_for(1, 30)
        until(lambda: routed_and_delivered(hub, topic))

    assert payloads(receiver) == [{"n": 2}]


def test_a_changed_filter_holds_for_what_is_published_after_the_answer(hub: Hub) -> None:
    with Receiver() as receiver:
        topic = a_topic(hub)
        name = subscribed(hub, topic, receiver, where="n < 10")
        publish(hub, topic, {"n": 1}, {"n": 11})
        create(hub, f"/api/subscriptions/{name}", {"topic": topic, "to": receiver.url, "where": "n >= 10"})
        publish(hub, topic, {"n": 2}, {"n": 12})
        receiver.wait_for(2, 30)
        until(lambda: routed_and_delivered(hub, topic))

    assert sorted(data["n"] for data in payloads(receiver)) == [1, 12]


def test_a_failing_callback_is_tried_again_with_the_same_delivery_id(hub: Hub) -> None:
    with Receiver([Answer(503), Answer(500), Answer(204)]) as receiver:
        topic = a_topic(hub)
        subscribed(hub, topic, receiver)
        publish(hub, topic, {"n": 1})
        arrivals = receiver.wait_for(3, 30)

    assert len({arrival.headers["tidings-delivery-id"] for arrival in arrivals}) == 1
    assert [arrival.headers["tidings-attempt"] for arrival in arrivals] == ["1", "2", "3"]


def test_a_dead_letter_can_be_seen_and_sent_again(hub: Hub) -> None:
    works = False
    with Receiver(lambda arrival: Answer(204 if works else 500)) as receiver:
        topic = a_topic(hub)
        name = subscribed(hub, topic, receiver, to=None, delivery={"url": receiver.url, "tries": 2})
        publish(hub, topic, {"n": 1})
        until(lambda: len(_dead_letters(hub, name)) == 1)
        letter = _dead_letters(hub, name)[0]
        works = True
        assert hub.call("POST", f"/api/subscriptions/{name}/redeliver", {"deadLetters": True}).status in (200, 202)
        receiver.wait_for(3, 30)
        until(lambda: _dead_letters(hub, name) == [])

    assert letter["tries"] == 2
    assert letter["event"]["data"] == {"n": 1}


def test_a_suspended_subscription_waits_and_goes_on_where_it_stopped(hub: Hub) -> None:
    with Receiver() as receiver:
        topic = a_topic(hub)
        name = subscribed(hub, topic, receiver)
        publish(hub, topic, {"n": 1})
        receiver.wait_for(1, 30)
        assert hub.call("PUT", f"/api/subscriptions/{name}/state", {"state": "suspended"}).status == 200
        publish(hub, topic, {"n": 2})
        until(lambda: _subscription_lag(hub, name) == 1)
        assert len(receiver.arrivals) == 1
        assert hub.call("PUT", f"/api/subscriptions/{name}/state", {"state": "active"}).status == 200
        receiver.wait_for(2, 30)

    assert payloads(receiver) == [{"n": 1}, {"n": 2}]


def test_rewinding_sends_again_what_the_lane_holds(hub: Hub) -> None:
    with Receiver() as receiver:
        topic = a_topic(hub)
        name = subscribed(hub, topic, receiver, where="n != 2")
        publish(hub, topic, {"n": 1}, {"n": 2}, {"n": 3})
        receiver.wait_for(2, 30)
        assert hub.call("POST", f"/api/subscriptions/{name}/rewind", {"to": "_first"}).status in (200, 202)
        receiver.wait_for(4, 30)

    assert sorted(data["n"] for data in payloads(receiver)) == [1, 1, 3, 3]


def test_a_subscription_that_waits_for_approval_gets_only_what_comes_after_the_grant(hub: Hub) -> None:
    with Receiver() as receiver:
        topic = a_topic(hub)
        create(hub, f"/api/exposures/{topic}", {"approval": "manual"})
        name = subscribed(hub, topic, receiver)
        publish(hub, topic, {"n": 1})
        assert hub.call("PUT", f"/api/approvals/{name}/{topic}", {"state": "granted"}).status == 200
        publish(hub, topic, {"n": 2})
        receiver.wait_for(1, 30)
        until(lambda: routed_and_delivered(hub, topic))

    assert payloads(receiver) == [{"n": 2}]


def test_a_namespace_subscription_gets_topics_that_join_later(hub: Hub) -> None:
    space = fresh("shop")
    with Receiver() as receiver:
        create(hub, f"/api/topics/{space}:first", {})
        name = fresh("sub")
        create(hub, f"/api/subscriptions/{name}", {"namespace": space, "to": receiver.url})
        create(hub, f"/api/topics/{space}:second", {})
        publish(hub, f"{space}:first", {"n": 1})
        publish(hub, f"{space}:second", {"n": 2})
        receiver.wait_for(2, 30)

    assert sorted(data["n"] for data in payloads(receiver)) == [1, 2]


def test_a_deleted_subscription_gets_nothing_more(hub: Hub) -> None:
    with Receiver() as gone, Receiver() as stays:
        topic = a_topic(hub)
        name = subscribed(hub, topic, gone)
        subscribed(hub, topic, stays)
        publish(hub, topic, {"n": 1})
        gone.wait_for(1, 30)
        assert hub.call("DELETE", f"/api/subscriptions/{name}").status in (200, 204)
        publish(hub, topic, {"n": 2})
        stays.wait_for(2, 30)
        until(lambda: routed_and_delivered(hub, topic))

    assert payloads(gone) == [{"n": 1}]


def test_a_dead_endpoint_does_not_delay_a_healthy_one(hub: Hub) -> None:
    with Receiver([Answer(hang=True)]) as dead, Receiver() as healthy:
        topic = a_topic(hub)
        hung = subscribed(hub, topic, dead)
        subscribed(hub, topic, healthy)
        publish(hub, topic, *({"n": n} for n in range(20)))
        healthy.wait_for(20, 30)
        hub.call("DELETE", f"/api/subscriptions/{hung}")


def test_status_metrics_and_health_tell_that_all_parts_work(hub: Hub) -> None:
    topic = a_topic(hub)
    publish(hub, topic, {"n": 1})
    until(lambda: hub.call("GET", "/api/status").json["lag"]["routing"]["events"] == 0)
    until(lambda: f'topic="{topic}"' in hub.call("GET", "/metrics").body.decode())
    status = hub.call("GET", "/api/status").json
    metrics = hub.call("GET", "/metrics").body.decode()

    assert hub.call("GET", "/health/live").status == 200
    assert hub.call("GET", "/health/ready").status == 200
    assert set(status["parts"]) == {"api", "pipeline", "deliver"}
    assert all(part["ready"] for part in status["parts"].values())
    for name in ("tidings_published_total", "tidings_routed_total", "tidings_batch_seconds", "tidings_lag_events"):
        assert name in metrics


def _dead_letters(hub: Hub, name: str) -> list[Any]:
    found: list[Any] = hub.call("GET", f"/api/subscriptions/{name}/dead-letters").json["deadLetters"]
    return found


def _subscription_lag(hub: Hub, name: str) -> int:
    return next(int(one["lag"]) for one in hub.call("GET", "/api/status").json["subscriptions"] if one["name"] == name)
