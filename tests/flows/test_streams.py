"""Publish, Spark, stream: against a hub that really runs, over HTTP alone."""

from __future__ import annotations

import json

import pytest

from tests.doors.horizon.worlds import Door, a_horizon_event, a_rover, a_specification, a_stream
from tests.doors.sse.worlds import Reader
from tests.flows.test_publish_to_callback import a_topic
from tests.hub import Hub
from tidings.doors.horizon.names import subscription_id

pytestmark = [pytest.mark.hub, pytest.mark.spark]


def test_an_open_stream_gets_what_is_published_and_matches(hub: Hub) -> None:
    topic = a_topic(hub)
    wanted = {"topic": topic, "where": "total > 5", "delivery": {"kind": "sse"}, "project": {"include": ["total"]}}
    assert hub.call("PUT", f"/api/subscriptions/{topic}-read", wanted).status == 201
    reader = Reader(hub, f"/api/subscriptions/{topic}-read/stream?limit=2", timeout=60)
    assert reader.response.status == 200
    for total in (9, 1, 7):
        assert hub.call("POST", f"/api/topics/{topic}/events", {"total": total, "secret": 1}).status == 202
    assert [event["data"] for _, event in reader.frames(2)] == [{"total": 9}, {"total": 7}]


def test_t37_a_horizon_stream_refers_to_payloads_that_are_filtered(hub: Hub) -> None:
    door = Door(hub, environment="streams")
    referring = {**a_stream("referred.v1"), "payloadType": "dataref", "trigger": {"responseFilter": ["total"]}}
    door.applied(
        a_rover("shop", exposures=[{"eventType": "referred.v1"}], subscriptions=[referring]), a_specification("referred.v1")
    )
    mine = subscription_id("streams", "referred.v1", "hub--team--shop")
    event = a_horizon_event("referred.v1", data={"total": 5, "secret": 1}, dataref="http://past.the.filter/")
    assert door.publish(event).status == 201
    answer = Reader(hub, f"/horizon/v1/streams/sse/{mine}?maxNumber=1", timeout=60).answer()
    got = json.loads(answer.body)
    assert (got["id"], "data" in got) == (event["id"], False)
    fetched = hub.call("GET", "/horizon/" + got["dataref"].partition("/horizon/")[2])
    assert (fetched.status, fetched.json) == (200, {"total": 5})
