"""Events as Horizon writes them: its members in its order, and nothing else."""

from __future__ import annotations

import json

import pytest

from tests.builders import an_event
from tidings.doors.horizon.event_json import horizon_json, horizon_reference


def test_members_stand_in_horizons_order_and_others_are_left_out() -> None:
    event = an_event(b'{"a": 1}', time="2024-05-28T11:21:25Z", subject="x", custom="y", datacontenttype="application/json")
    assert list(json.loads(horizon_json(event))) == ["id", "type", "source", "specversion", "datacontenttype", "time", "data"]


@pytest.mark.parametrize(
    ("data", "content_type", "written"),
    [
        (b'{"z": 1.50, "a": [ 1 ]}', "application/json", b'"data":{"z": 1.50, "a": [ 1 ]}}'),
        (b'{\n"a": 1\r\n}', "application/json", b'"data":{ "a": 1  }}'),
        (b"null", "application/vnd.shop+json", b'"data":null}'),
        ("grüße".encode(), "text/plain", '"data":"grüße"}'.encode()),
        (b"<a/>", "application/octet-stream", b'"data":"<a/>"}'),
        (b"\xff\x00", "image/png", b'"data_base64":"/wA="}'),
    ],
)
def test_a_payload_keeps_its_text(data: bytes, content_type: str, written: bytes) -> None:
    assert horizon_json(an_event(data, datacontenttype=content_type)).endswith(written)


def test_a_reference_takes_the_place_of_the_payload_and_of_another_reference() -> None:
    body = json.loads(horizon_reference(an_event(b"{}", dataref="http://elsewhere/"), "http://hub/1"))
    assert (body["dataref"], "data" in body) == ("http://hub/1", False)


def test_an_event_without_a_payload_keeps_its_own_reference() -> None:
    event = an_event(dataref="http://elsewhere/")
    assert horizon_reference(event, "http://hub/1") == horizon_json(event)
    assert json.loads(horizon_json(event))["dataref"] == "http://elsewhere/"
