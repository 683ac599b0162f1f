"""A topic with Avro payloads over HTTP: publishing, reading, explaining."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.api_process import ApiProcess, an_api
from tests.hub import Answer
from tidings.events.avro.schema import AvroSchema

ONE: dict[str, Any] = {"type": "record", "name": "Order", "fields": [{"name": "n", "type": "long"}]}
TWO: dict[str, Any] = {**ONE, "fields": [*ONE["fields"], {"name": "note", "type": ["null", "string"], "default": None}]}
FIRST, SECOND = AvroSchema(json.dumps(ONE)), AvroSchema(json.dumps(TWO))


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    with an_api(tmp_path_factory.mktemp("avro")) as api:
        yield api


@pytest.fixture
def topic(api: ApiProcess, request: pytest.FixtureRequest) -> str:
    name = f"t{abs(hash(request.node.name))}"
    assert api.call("PUT", f"/api/topics/{name}", {"avro": {"schema": ONE}}).status == 201
    return name


def shown(api: ApiProcess, topic: str, **query: object) -> list[tuple[Any, Any]]:
    events = [line["event"] for line in api.lines(topic, **query) if "event" in line]
    return [(event["datacontenttype"], event.get("data", event.get("data_base64"))) for event in events]


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_json_and_binary_are_stored_as_avro_and_shown_as_json_or_as_bytes(api: ApiProcess, topic: str) -> None:
    binary = FIRST.from_json(b'{"n":2}')
    assert api.publish(topic, {"n": 1, "more": "x"}).status == 202
    assert api.publish(topic, binary, "avro/binary").status == 202
    assert shown(api, topic) == [("application/json", {"n": 1}), ("application/json", {"n": 2})]
    assert shown(api, topic, payload="bytes") == [
        ("avro/binary", encoded(FIRST.from_json(b'{"n":1}'))),
        ("avro/binary", encoded(binary)),
    ]
    assert api.call("GET", f"/api/topics/{topic}/events", payload="xml").status == 400


def test_events_stay_readable_when_the_schema_changes(api: ApiProcess, topic: str) -> None:
    api.publish(topic, {"n": 1})
    assert api.call("PATCH", f"/api/topics/{topic}", {"avro": {"schema": TWO}}).status == 200
    assert api.publish(topic, {"n": 2, "note": "x"}).status == 202
    assert api.publish(topic, {"n": 3, "note": "x"}, schema_version="1").status == 202
    assert [data for _, data in shown(api, topic)] == [{"n": 1}, {"n": 2, "note": "x"}, {"n": 3}]


def test_a_cloudevent_keeps_its_attributes(api: ApiProcess, topic: str) -> None:
    event = {"specversion": "1.0", "id": "7", "source": "/s", "type": "t", "subject": "x", "data": {"n": 5}}
    sent = {**event, "id": "8", "datacontenttype": "avro/binary", "data_base64": encoded(FIRST.from_json(b'{"n":6}'))}
    sent.pop("data")
    assert api.publish(topic, [event, sent], "application/cloudevents-batch+json").status == 202
    first, second = api.events(topic)
    assert (first["id"], first["subject"], first["data"]) == ("7", "x", {"n": 5})
    assert (second["id"], second["data"]) == ("8", {"n": 6})


@pytest.mark.parametrize(
    ("body", "kind", "headers", "words"),
    [
        (b'{"n":"x"}', "application/json", {}, "at /n: expected a number, found a text"),
        (b"{}", "application/json", {}, "at /n: the field is missing"),
        (b"{", "application/json", {}, "JSON"),
        (b"\x80", "avro/binary", {}, "at /n: the payload ends inside a number (byte 0)"),
        (b"\x02\x00", "avro/binary", {}, "the value ends at byte 1 and the payload has 2"),
        (b"", "avro/binary", {}, "there is none"),
        (b"hello", "text/plain", {}, "the topic takes Avro or JSON"),
        (b'{"n":1}', "application/json", {"schema_version": "9"}, "no such schema version"),
        (b'{"n":1}', "application/json", {"schema_version": "x"}, "not a schema version"),
    ],
)
def test_bad_payloads_are_refused_with_the_place_and_leave_nothing(
    api: ApiProcess, topic: str, body: bytes, kind: str, headers: dict[str, str], words: str
) -> None:
    answer: Answer = api.publish(topic, body, kind, **headers)
    assert answer.status == 400, answer.body
    told = answer.json
    assert words in (told["errors"][0]["detail"] if told.get("errors") else told["detail"])
    assert api.events(topic) == []


def test_explaining_reads_avro(api: ApiProcess, topic: str) -> None:
    chain = [{"type": "avropath", "path": ".n", "matcher": "7"}]
    wanted = {"topic": topic, "filter": {"dialect": "hermes", "filter": chain}, "delivery": {"kind": "pull"}}
    made = api.call("PUT", f"/api/subscriptions/{topic}-seven", wanted)
    assert made.status == 201, made.body
    cursors = [api.publish(topic, {"n": n}).json["first"] for n in (7, 8)]
    asked = [{"cursor": cursor} for cursor in cursors] + [{"data": {"n": 7}}, {"data": {"n": 9}}]
    verdicts = [api.call("POST", f"/api/topics/{topic}/explain", one).json["verdicts"][0] for one in asked]
    assert [one["gets"] for one in verdicts] == [True, False, True, False]
    assert "found '8'" in verdicts[1]["why"]
    assert api.call("POST", f"/api/topics/{topic}/explain", {"data": {"n": "x"}}).status == 400


def test_feeds_show_json_or_bytes(api: ApiProcess, topic: str) -> None:
    api.publish(topic, {"n": 1})

    def data(query: str) -> list[Any]:
        answer = api.call("GET", f"/feeds/{topic}?n=1&cursor0=_first{query}")
        assert answer.status == 200, answer.body
        lines = [json.loads(line) for line in answer.body.splitlines() if line]
        return [line["data"] for line in lines if "data" in line]

    (event,) = data("")
    assert (event["datacontenttype"], event["data"]) == ("application/json", {"n": 1})
    (event,) = data("&payload=bytes")
    assert (event["datacontenttype"], event["data_base64"]) == ("avro/binary", encoded(b"\x02"))
    assert data("") == data("")
    assert api.call("GET", f"/feeds/{topic}?n=1&cursor0=_first&payload=xml").status == 400
