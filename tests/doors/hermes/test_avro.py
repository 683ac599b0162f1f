"""Avro topics over HTTP and in deliveries (HER-30, HER-68, HER-76, HER-114, HER-T43, HER-T48)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.doors.hermes.delivering import HermesWorld, a_hermes_world
from tests.doors.hermes.worlds import a_topic, refusal
from tests.receivers import Receiver
from tidings.events.avro.schema import compiled

METADATA = {"name": "__metadata", "type": ["null", {"type": "map", "values": "string"}], "default": None}
NAME = {"name": "name", "type": "string"}
AGE = {"name": "age", "type": ["null", "int"], "default": None}


def a_schema(*fields: Any) -> str:
    return json.dumps({"type": "record", "name": "User", "fields": list(fields)})


FIRST, SECOND = a_schema(METADATA, NAME), a_schema(METADATA, NAME, AGE)


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HermesWorld]:
    with a_hermes_world(tmp_path_factory.mktemp("avro")) as world:
        yield world


def avro_topic(door: HermesWorld, name: str, schema: str = FIRST) -> str:
    return door.topic(name, contentType="AVRO", schema=schema)


def test_an_avro_topic_needs_a_schema_with_metadata(door: HermesWorld) -> None:
    door.topic("shop.plain")
    lacking = door.call("POST", "/topics", a_topic("shop.bad", contentType="AVRO"))
    assert refusal(lacking) == (400, "VALIDATION_ERROR") and "Topic.schema" in lacking.json["message"]
    bare = door.call("POST", "/topics", a_topic("shop.bad", contentType="AVRO", schema=a_schema(NAME)))
    assert refusal(bare) == (400, "AVRO_SCHEMA_INVALID_METADATA")
    broken = door.call("POST", "/topics", a_topic("shop.bad", contentType="AVRO", schema='{"type": "nothing"}'))
    assert refusal(broken) == (400, "SCHEMA_BAD_REQUEST")
    assert "shop.bad" not in door.get("/topics")


def test_each_content_type_of_the_page_is_taken(door: HermesWorld) -> None:
    topic, schema = avro_topic(door, "shop.kinds"), compiled(FIRST)
    binary = schema.from_json(b'{"name": "Ann"}')
    for kind, body in {
        "application/json": b'{"name": "Ann"}',
        "Avro/JSON; charset=utf-8": b'{"__metadata": null, "name": "Ann"}',
        "avro/binary;x=y": binary,
    }.items():
        assert door.publish(topic, body, content_type=kind).status == 201, kind
    for kind, body in {
        "text/plain": b"{}",
        "": b'{"name": "Ann"}',
        "application/json": b'{"name": 5}',
        "avro/binary": b"\x99",
    }.items():
        answer = door.publish(topic, body, content_type=kind)
        assert refusal(answer) == (400, "VALIDATION_ERROR"), kind
        assert answer.json["message"].startswith("Invalid message: ")


def test_t48_subscribers_get_avro_or_json_as_they_want(door: HermesWorld) -> None:
    topic, schema = avro_topic(door, "shop.both"), compiled(FIRST)
    with Receiver() as json_receiver, Receiver() as avro_receiver:
        as_json = door.subscribed(json_receiver, topic=topic)
        as_avro = door.subscribed(avro_receiver, topic=topic, contentType="AVRO")
        door.world.route()
        message = door.sent(topic, b'{"name": "Ann"}', content_type="application/json")
        door.world.route(as_json.lane, as_avro.lane)
        (one,), (other,) = json_receiver.wait_for(1, 20), avro_receiver.wait_for(1, 20)
    assert (one.headers["content-type"], json.loads(one.body)) == ("application/json", {"name": "Ann"})
    assert (other.headers["content-type"], other.headers["schema-version"]) == ("avro/binary", "1")
    value = schema.value(other.body)
    assert value["name"] == "Ann" and value["__metadata"]["messageId"] == message == other.headers["hermes-message-id"]
    assert int(value["__metadata"]["timestamp"]) > 1.7e12


def test_schemas_have_versions_and_publishers_name_them(door: HermesWorld) -> None:
    topic = avro_topic(door, "shop.versions")
    with Receiver() as receiver:
        sub = door.subscribed(receiver, topic=topic, contentType="AVRO")
        assert door.call("POST", f"/topics/{topic}/schema", SECOND.encode()).status == 201
        sub.send(b'{"name": "old"}', content_type="application/json", schema_version="1")
        sub.send(b'{"name": "new", "age": 5}', content_type="application/json", schema_version="newest")
        arrivals = receiver.wait_for(2, 20)
    assert sorted(one.headers["schema-version"] for one in arrivals) == ["1", "2"]
    assert json.loads(door.call("GET", f"/topics/{topic}/schema/versions/1").body) == json.loads(FIRST)
    assert json.loads(door.call("GET", f"/topics/{topic}/schema").body) == json.loads(SECOND)
    assert refusal(door.call("GET", f"/topics/{topic}/schema/versions/3")) == (400, "SCHEMA_VERSION_DOES_NOT_EXIST")
    unknown = door.publish(topic, b'{"name": "x"}', content_type="application/json", schema_version="7")
    assert refusal(unknown) == (400, "SCHEMA_VERSION_DOES_NOT_EXIST")
    needed = a_schema(METADATA, NAME, {"name": "street", "type": "string"})
    assert refusal(door.call("POST", f"/topics/{topic}/schema", needed.encode()))[0] == 400
    assert refusal(door.call("DELETE", f"/topics/{topic}/schema")) == (406, "OPERATION_DISABLED")


def test_a_batch_of_avro_messages_is_json(door: HermesWorld) -> None:
    topic = avro_topic(door, "shop.batches")
    with Receiver() as receiver:
        sub = door.subscribed(receiver, topic=topic, deliveryType="BATCH", subscriptionPolicy={"batchSize": 2})
        sub.send(*(b'{"name": "%d"}' % n for n in range(2)), content_type="application/json")
        (batch,) = receiver.wait_for(1, 20)
    assert [one["message"] for one in json.loads(batch.body)] == [{"name": "0"}, {"name": "1"}]


def test_filters_are_of_the_kind_that_a_topic_has(door: HermesWorld) -> None:
    topic = avro_topic(door, "shop.filtered")
    with Receiver() as receiver:
        sub = door.subscribed(receiver, topic=topic)
        page = {"filters": [{"type": "avropath", "path": ".user.name", "matcher": "^abc.*"}]}
        assert door.call("PUT", sub.path, page).status == 200
        assert door.get(sub.path)["filters"] == page["filters"]
        wrong = door.call("PUT", sub.path, {"filters": [{"type": "jsonpath", "path": "$.a", "matcher": "x"}]})
        assert "Message filter type jsonpath doesn't match topic content type AVRO" in wrong.json["message"]
