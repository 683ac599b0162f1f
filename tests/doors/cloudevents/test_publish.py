"""Publishing through the CloudEvents door: CT-01, CT-03 to CT-11, and which topic a type belongs to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conformance.test_cloudevents import FEATURE, FOLDER, SAMPLES, all_scenarios, as_binary, as_structured, attributes_of
from tests.doors.cloudevents.worlds import BATCH, STRUCTURED, Door, a_door, an_event


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    settings = {"ingest": {"webhook_origins": ["other.example"]}}
    with a_door(tmp_path_factory.mktemp("cloudevents"), **settings) as door:
        yield door


@pytest.fixture
def door(shared: Door) -> Iterator[Door]:
    """With an empty topic `orders`."""
    yield shared
    shared.api.call("DELETE", "/api/topics/orders")
    shared.api.call("PUT", "/api/topics/orders", {"duplicates": "24h"})


def test_publishing_is_answered_202_with_an_empty_body(door: Door) -> None:
    answer = door.publish(an_event())
    assert (answer.status, answer.body, answer.headers["content-length"]) == (202, b"", "0")
    assert door.events() == [an_event()]


@pytest.mark.skipif(not FEATURE.exists(), reason=f"the CloudEvents conformance data is not in {FOLDER}")
def test_ct_01_the_scenarios_of_the_conformance_features(door: Door) -> None:
    for scenario in all_scenarios():
        door.api.call("PUT", "/api/topics/one", {})
        headers = {
            name.decode(): value.decode("latin-1")
            for name, value in scenario.headers
            if name not in (b"content-length", b"host")
        }
        assert door.call("POST", "/topics/one", scenario.body, headers).status == 202
        (event,) = door.events("one")
        assert json.loads(json.dumps(event.pop("data"))) == json.loads(scenario.data)
        assert event == scenario.attributes
        door.api.call("DELETE", "/api/topics/one")


@pytest.mark.skipif(not SAMPLES, reason=f"the CloudEvents conformance data is not in {FOLDER}")
@pytest.mark.parametrize("form", [as_binary, as_structured])
def test_ct_02_the_minimum_events_are_stored_as_they_were(door: Door, form: Any) -> None:
    for sample in SAMPLES:
        headers, body = form(sample)
        door.api.call("PUT", "/api/topics/one", {})
        assert door.call("POST", "/topics/one", body, {n.decode(): v.decode("latin-1") for n, v in headers}).status == 202
        (event,) = door.events("one")
        assert attributes_of(sample).items() <= event.items()
        door.api.call("DELETE", "/api/topics/one")


@pytest.mark.parametrize(
    ("event", "attribute"),
    [
        (an_event(id=None), "id"),
        (an_event(id=""), "id"),
        (an_event(specversion="0.3"), "specversion"),
        (an_event(specversion="1.1"), "specversion"),
        (an_event(My_Ext="x"), "My_Ext"),
        (an_event(ext=1.5), "ext"),
        (an_event(ext={}), "ext"),
        (an_event(ext=2**31), "ext"),
        (an_event(source="not a uri"), "source"),
        (an_event(dataschema="/relative"), "dataschema"),
        (an_event(**{"a" * 129: "x"}), "a" * 79 + "…"),
    ],
)
def test_ct_03_a_bad_attribute_is_named(door: Door, event: dict[str, Any], attribute: str) -> None:
    answer = door.publish(event)
    assert (answer.status, answer.headers["content-type"]) == (400, "application/problem+json")
    assert answer.json["errors"][0]["attribute"][:70] == attribute[:70]
    assert answer.json["code"] == "invalid-event"
    assert door.events() == []


@pytest.mark.parametrize(
    ("members", "status", "stored"),
    [
        ({"subject": None, "time": None}, 202, {}),
        ({"time": "2018-04-05"}, 400, None),
        ({"time": "2018-04-05 17:31:00Z"}, 400, None),
        ({"time": "2018-04-05T17:31:60Z"}, 202, {"time": "2018-04-05T17:31:60Z"}),
        ({"time": "2018-04-05T17:31:00.123456789Z"}, 202, {"time": "2018-04-05T17:31:00.123456789Z"}),
    ],
)
def test_ct_04_null_is_unset_and_times_keep_their_text(
    door: Door, members: dict[str, Any], status: int, stored: dict[str, Any] | None
) -> None:
    event = an_event()
    assert door.publish({**event, **members}).status == status
    assert door.events() == ([] if stored is None else [{**event, **stored}])


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (b'"data":1,"data_base64":"AA=="', 400),
        (b'"data_base64":"?"', 400),
        (b'"data":null', 202),
        (b'"data_base64":null', 202),
        (b'"subject":"x"', 202),
    ],
)
def test_ct_05_a_payload_is_data_or_data_base64(door: Door, text: bytes, status: int) -> None:
    body = b'{"specversion":"1.0","id":"1","source":"/s","type":"t",%b}' % text
    assert door.publish(body).status == status
    events = door.events()
    assert [("data" in event, event.get("data", "none")) for event in events] == (
        [] if status == 400 else [(b"null" in text and b'"data":' in text, None if b'"data":' in text else "none")]
    )


@pytest.mark.parametrize(
    ("sent", "stored"),
    [("Euro%20%e2%82%ac", "Euro €"), ('"a \\"b\\""', 'a "b"'), ("%C0%A0", None), ("100%", "100%"), ("a b", "a b")],
)
def test_ct_06_header_values_are_decoded(door: Door, sent: str, stored: str | None) -> None:
    answer = door.binary(b"{}", content_type="application/json", ce_subject=sent)
    assert answer.status == (400 if stored is None else 202)
    assert [event["subject"] for event in door.events()] == ([] if stored is None else [stored])


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("APPLICATION/CloudEvents+JSON; charset=UTF-8", 202),
        ("application/cloudevents+json; charset=latin-1", 415),
        ("application/cloudevents+xml", 415),
        ("application/cloudevents+avro", 415),
        ("application/cloudevents-batch+protobuf", 415),
        ("application/cloudevents", 415),
        ("application/json", 400),
        ("text/plain", 400),
    ],
)
def test_ct_07_the_mode_follows_from_the_content_type(door: Door, content_type: str, status: int) -> None:
    assert door.publish(an_event(), content_type).status == status
    assert len(door.events()) == (status == 202)


def test_ct_08_a_batch_is_all_or_nothing(door: Door) -> None:
    three = [an_event(id=str(number)) for number in range(3)]
    assert door.publish([], BATCH).status == 202
    assert door.publish([], BATCH, "/events").status == 202
    refused = door.publish([three[0], an_event(id="9", source=None), three[2]], BATCH)
    assert (refused.status, refused.json["errors"][0]["index"], door.events()) == (400, 1, [])
    assert door.publish(three, BATCH).status == 202
    assert door.events() == three
    many = [an_event(id=f"m{number}") for number in range(1001)]
    assert (door.publish(many, BATCH).status, len(door.events())) == (413, 3)
    assert door.publish(many[:1000], BATCH).status == 202


def test_ct_09_numbers_keep_their_text(door: Door) -> None:
    data = b'{"a":1.0,"b":1e400,"c":12345678901234567890,"z":1,"y":2}'
    body = b'{"specversion":"1.0","id":"1","source":"/s","type":"t","data":%b}'
    assert door.publish(body % data).status == 202
    assert data in door.api.call("GET", "/api/topics/orders/events").body
    for bad in (b"NaN", b"Infinity", b'{"a":1,"a":2}', b'"\xff"'):
        assert door.publish(body % bad).status == 400
    assert door.publish(b"\xef\xbb\xbf" + body % data).status == 400
    assert len(door.events()) == 1


def test_ct_10_the_same_event_is_stored_once(door: Door) -> None:
    assert [door.publish(an_event()).status for _ in range(2)] == [202, 202]
    refused = door.publish(an_event(data={"total": 6}))
    assert (refused.status, refused.json["code"]) == (409, "duplicate-event")
    assert door.events() == [an_event()]


@pytest.mark.parametrize("path", ["/topics/orders", "/events"])
def test_ct_11_an_event_has_a_largest_size(door: Door, path: str) -> None:
    text = json.dumps(an_event(type="orders", data=""))
    for more, status in ((0, 202), (1, 413)):
        event = an_event(type="orders", data="x" * (65_536 - len(text) + more))
        assert door.publish(event, path=path).status == status
    assert len(door.events()) == 1


def test_a_body_of_100_mb_is_refused_before_it_is_read(door: Door) -> None:
    answer = door.call("POST", "/topics/orders", b"", {"content-type": STRUCTURED, "content-length": "100000000"})
    assert answer.status == 413


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b'{"specversion":null,"id":null,"source":null,"type":null,"data":null}',
        b'{"specversion":"1.0","id":"\\ud800","source":"/s","type":"t"}',
        b'{"specversion":"1.0","id":"1","id":"2","source":"/s","type":"t"}',
        b'{"specversion":"1.0","id":"1","source":"/s","type":"t","data":' + b"[" * 1000 + b"]" * 1000 + b"}",
        b'{"specversion":"1.0","id":"1","source":"/s","type":"t","Type":"t"}',
    ],
)
def test_bad_bodies_leave_nothing(door: Door, body: bytes) -> None:
    assert door.publish(body).status == 400
    assert door.events() == []


def test_binary_events_keep_their_payload_and_repeated_headers_are_refused(door: Door) -> None:
    assert door.binary(b"a,b", content_type="text/csv").status == 202
    assert door.binary(b"\xffraw", ce_id="2", content_type="application/octet-stream").status == 202
    assert door.binary(b"", ce_id="3", ce_datacontenttype="text/plain").status == 400
    first, second = door.events()
    assert (first["data"], first["datacontenttype"]) == ("a,b", "text/csv")
    assert second["data_base64"] == "/3Jhdw=="


def test_the_type_says_the_topic(tmp_path: Any) -> None:
    with a_door(tmp_path, cloudevents={"default_topic": "rest"}) as door:
        for topic, labels in (("order.created", {}), ("billing", {"types": "bill.sent, bill.paid"}), ("rest", {})):
            door.api.call("PUT", f"/api/topics/{topic}", {"labels": labels})
        for type, topic in (("order.created", "order.created"), ("bill.paid", "billing"), ("other", "rest")):
            assert door.publish(an_event(type=type), path="/events").status == 202
            assert [event["type"] for event in door.events(topic)] == [type]
        mixed = [an_event(id="5", type="bill.paid"), an_event(id="6", type="other")]
        assert door.publish(mixed, BATCH, "/events").status == 400
        door.api.call("PUT", "/api/topics/second", {"labels": {"types": "bill.paid"}})
        assert door.publish(an_event(id="7", type="bill.paid"), path="/events").status == 409
        assert [len(door.events(topic)) for topic in ("billing", "rest", "second")] == [1, 1, 0]
        door.api.call("PUT", "/api/topics/small", {"maxEventBytes": 200, "labels": {"types": "small"}})
        assert door.publish(an_event(type="small", data="x" * 300), path="/events").status == 413


def test_a_type_that_no_topic_declares_is_404(door: Door) -> None:
    assert door.publish(an_event(type="nobody.knows"), path="/events").status == 404
    assert door.publish(an_event(), path="/topics/nowhere").status == 404


@pytest.mark.parametrize("path", ["/topics/orders", "/events"])
def test_wh_16_hubs_that_are_listed_may_deliver_here(door: Door, path: str) -> None:
    listed = door.call("OPTIONS", path, headers={"WebHook-Request-Origin": "Other.Example"})
    assert (listed.status, listed.headers["webhook-allowed-origin"]) == (200, "Other.Example")
    assert (listed.headers["webhook-allowed-rate"], listed.headers["allow"]) == ("*", "POST, OPTIONS")
    stranger = door.call("OPTIONS", path, headers={"WebHook-Request-Origin": "stranger.example"})
    assert (stranger.status, "webhook-allowed-origin" in stranger.headers) == (200, False)
    refused = door.call("GET", path)
    assert (refused.status, refused.headers["allow"]) == (405, "POST, OPTIONS")
