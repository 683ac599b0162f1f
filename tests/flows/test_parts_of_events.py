"""Projections and scopes over HTTP, against a hub that really runs: what arrives is a part, with its spelling kept."""

from __future__ import annotations

import pytest

from tests.flows.test_publish_to_callback import a_topic, create, subscribed
from tests.hub import Hub
from tests.receivers import Answer, Receiver

pytestmark = [pytest.mark.hub, pytest.mark.spark]

BODY = b"""{ "id": 100000000000000000001,
  "total": {"amount" : 1.0, "tax": 1e400}, "secret": "x", "items": [{"n":1,"v":2}, {"n":2.50}] }"""
EVENT = {
    "content-type": "application/json",
    "ce-specversion": "1.0",
    "ce-id": "42",
    "ce-source": "/shop",
    "ce-type": "order.created",
}


def publish(hub: Hub, topic: str, body: bytes = BODY) -> None:
    assert hub.call("POST", f"/api/topics/{topic}/events", body, EVENT).status == 202


def test_a_projected_event_arrives_stripped_and_its_numbers_keep_their_spelling(hub: Hub) -> None:
    with Receiver() as binary, Receiver() as structured, Receiver() as whole:
        topic = a_topic(hub)
        include = {"include": ["id", "total.amount", "items.*.n"]}
        subscribed(hub, topic, binary, to=None, delivery={"url": binary.url, "mode": "binary"}, project=include)
        subscribed(hub, topic, structured, project={"exclude": ["secret", "items.0", "total.tax"]})
        subscribed(hub, topic, whole, to=None, delivery={"url": whole.url, "mode": "binary"})
        publish(hub, topic)
        (one,), (other,), (third,) = (receiver.wait_for(1, 30) for receiver in (binary, structured, whole))

    assert one.body == b'{"id": 100000000000000000001,"total": {"amount" : 1.0},"items": [{"n":1},{"n":2.50}]}'
    assert (one.headers["ce-id"], one.headers["content-type"]) == ("42", "application/json")
    assert b'"data":{"id": 100000000000000000001,"total": {"amount" : 1.0},"items": [{"n":2.50}]}' in other.body
    assert third.body == BODY


def test_a_subscription_gets_what_its_scope_leaves_and_filters_only_that(hub: Hub) -> None:
    with Receiver() as seeing, Receiver() as prying:
        topic = a_topic(hub)
        scopes = {"eu": {"where": 'region = "EU"', "project": {"exclude": ["secret"]}}}
        create(hub, f"/api/exposures/{topic}", {"scopes": scopes})
        subscribed(hub, topic, seeing, to=None, delivery={"url": seeing.url, "mode": "binary"}, scopes=["eu"], where="n > 1")
        subscribed(hub, topic, prying, scopes=["eu"], where='secret = "x"')
        for region, n in (("EU", 1), ("EU", 2), ("US", 3), ("EU", 4)):
            publish(hub, topic, b'{"region":"%b","secret":"x","n":%d}' % (region.encode(), n))
        seeing.wait_for(2, 30)

    assert sorted(arrival.body for arrival in seeing.arrivals) == [b'{"region":"EU","n":2}', b'{"region":"EU","n":4}']
    assert prying.arrivals == []


def test_a_dead_letter_shows_only_the_part(hub: Hub) -> None:
    with Receiver([Answer(status=400)]) as receiver:
        topic = a_topic(hub)
        name = subscribed(hub, topic, receiver, project={"include": ["total.amount"]})
        publish(hub, topic)
        letters = f"/api/subscriptions/{name}/dead-letters"
        hub.until(lambda: bool(hub.call("GET", letters).json["deadLetters"]), 30, "there is a dead letter")
        (letter,) = hub.call("GET", letters).json["deadLetters"]
    assert letter["event"]["data"] == {"total": {"amount": 1.0}}
