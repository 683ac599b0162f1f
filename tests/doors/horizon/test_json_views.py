"""Which payloads filters see: the JSON view of this door, decided when an event is published (HOR-65 to HOR-67, HOR-147)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.doors.horizon.flows import World, arrived
from tests.doors.horizon.worlds import a_horizon_event
from tests.hub import Hub
from tests.polling import until
from tests.receivers import Receiver
from tidings.doors.horizon.event_json import is_json

INVALID = "INVALID_PAYLOAD_ERROR"
REFERENCE = "https://files.example/1"

SEEN: list[dict[str, Any]] = [
    {"data": {"a": 1}, "datacontenttype": None},
    {"data": {"a": 1}, "datacontenttype": "Application/JSON; charset=utf-8"},
    {"data": {"a": 1}, "datacontenttype": "application/vnd.shop.order+json"},
    {"data": '{"a": 1}', "datacontenttype": "application/json"},
]
UNSEEN: list[dict[str, Any]] = [
    {"data": {"a": 1}, "datacontenttype": "text/json"},
    {"data": '{"a": 1}', "datacontenttype": "text/json"},
    {"data": {"a": 1}, "datacontenttype": "text/plain"},
    {"data": "", "datacontenttype": "application/json"},
    {"data": '{"a": 1', "datacontenttype": "application/json"},
    {"data": None, "dataref": REFERENCE},
]


@pytest.mark.parametrize(
    ("content_type", "json"),
    [
        (None, True),
        ("application/json", True),
        ("APPLICATION/JSON ; charset=utf-8", True),
        ("application/Problem+JSON", True),
        ("text/json", False),
        ("image/x+json", False),
        ("application/jsonlines", False),
        ("", False),
    ],
)
def test_which_types_are_json(content_type: str | None, json: bool) -> None:
    assert is_json(content_type) is json


@pytest.mark.hub
@pytest.mark.spark
def test_hor_65_to_67_filters_and_projections_drop_what_has_no_json_view(hub: Hub) -> None:
    with Receiver() as selecting, Receiver() as projecting, Receiver() as scoped, Receiver() as empty, Receiver() as plain:
        world = World(hub, scopes=[{"name": "some", "trigger": {"responseFilter": ["b"], "responseFilterMode": "EXCLUDE"}}])
        subscriptions = {
            "selecting": world.subscribe(selecting, "one", trigger={"selectionFilter": {"a": "1"}}),
            "projecting": world.subscribe(projecting, "two", trigger={"responseFilter": ["a"]}),
            "scoped": world.subscribe(scoped, "three", scopes=["some"]),
        }
        none = {"responseFilter": [], "selectionFilter": {}}
        unfiltered = [world.subscribe(empty, "four", trigger=none), world.subscribe(plain, "five")]
        seen = [a_horizon_event(**members) for members in SEEN]
        unseen = [a_horizon_event(**members) for members in UNSEEN]
        for event in (*unseen, *seen):
            assert world.publish(event).status == 201
        for receiver in (selecting, projecting, scoped):
            got = arrived(receiver, len(seen))
            assert {one["id"]: one["data"] for one in got} == {one["id"]: {"a": 1} for one in seen}
        for name, subscription in subscriptions.items():
            dropped = until(lambda each=subscription: world.events(each, "?status=DROPPED"), "dropped ones")
            results = {one["event"]["id"]: one["properties"]["selectionFilterResult"] for one in dropped}
            assert results == {one["id"]: INVALID for one in unseen}, name
        for receiver in (empty, plain):
            got = arrived(receiver, len(SEEN + UNSEEN))
            assert {one["id"]: one.get("data") for one in got} == {one["id"]: one.get("data") for one in (*unseen, *seen)}
            assert [one["dataref"] for one in got if "dataref" in one] == [REFERENCE]
        assert [world.events(one, "?status=DROPPED") for one in unfiltered] == [[], []]


@pytest.mark.hub
@pytest.mark.spark
def test_hor_147_an_event_that_only_refers_to_its_data_goes_on_as_it_is(hub: Hub) -> None:
    with Receiver() as data, Receiver() as dataref:
        world = World(hub)
        world.subscribe(data, "one")
        world.subscribe(dataref, "two", payloadType="dataref")
        world.send(None, dataref=REFERENCE)
        for receiver in (data, dataref):
            (got,) = arrived(receiver, 1)
            assert got["dataref"] == REFERENCE and "data" not in got
