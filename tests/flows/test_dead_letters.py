"""An event that cannot be delivered, through a whole hub: it is told as an event, and its trace says what was tried."""

from __future__ import annotations

import json

import pytest

from tests.flows.test_publish_to_callback import a_topic, routed_and_delivered, subscribed
from tests.hub import Hub
from tests.polling import until
from tests.receivers import Answer, Receiver

pytestmark = [pytest.mark.hub, pytest.mark.spark]


def test_whoever_subscribes_to_dead_letters_is_told_and_the_trace_says_the_rest(hub: Hub) -> None:
    topic = a_topic(hub)
    with Receiver((Answer(500),)) as broken, Receiver() as fine, Receiver() as watching:
        failing = subscribed(hub, topic, broken, to=None, delivery={"url": broken.url, "tries": 2})
        well = subscribed(hub, topic, fine)
        subscribed(hub, "tidings:dead-letters", watching, where=f"subscription = '{failing}'")
        published = hub.call("POST", f"/api/topics/{topic}/events", {"total": 5}).json
        told = json.loads(watching.wait_for(1, 60)[0].body)
        assert (told["type"], told["subject"], told["data"]["cursor"]) == ("tidings.dead-letter", failing, published["first"])
        assert (told["data"]["tries"], told["data"]["topic"]) == (2, topic)

        fine.wait_for(1)
        until(lambda: routed_and_delivered(hub, topic))
        traced = hub.call("GET", f"/api/topics/{topic}/events/{published['first']}/trace").json
        found = {one["subscription"]: one["delivery"] for one in traced["deliveries"]}
        assert {name: one["state"] for name, one in found.items()} == {failing: "dead", well: "delivered"}
        assert [fact["status"] for fact in found[failing]["history"]] == [500, 500]
        assert found[failing]["id"] == told["data"]["delivery"]
        assert found[failing]["target"] == broken.url
