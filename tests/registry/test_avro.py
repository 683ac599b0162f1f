"""Topics with Avro payloads: versions are added, never taken away, and must agree as the topic asks."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from tests.builders import a_name, a_topic
from tests.registry.worlds import a_world, put, without
from tidings.errors import InvalidDocument
from tidings.events.avro.names import fingerprint
from tidings.registry.avro import AvroPayload, AvroVersion, Compatibility
from tidings.registry.model import Topic
from tidings.registry.rules import World, check
from tidings.registry.rules.avro import MAX_VERSIONS
from tidings.registry.store.rows import document_of, text_of

ORDERS = a_name("orders")


def schema(*names: str, default: bool = True) -> str:
    fields: list[dict[str, Any]] = [{"name": name, "type": "int"} | ({"default": 0} if default else {}) for name in names]
    return json.dumps({"type": "record", "name": "R", "fields": fields}, separators=(",", ":"))


def avro_topic(text: str, compatibility: str = "backward") -> Topic:
    return a_topic(avro=AvroPayload(versions=(AvroVersion(0, text),), compatibility=Compatibility(compatibility)))


def avro_of(world: World) -> AvroPayload:
    avro = world.snapshot.topics[ORDERS].avro
    assert avro is not None
    return avro


def refused(world: World, topic: Topic) -> str:
    with pytest.raises(InvalidDocument) as found:
        put(world, topic)
    (fault,) = found.value.faults
    return f"{fault.attribute}: {fault.detail}"


def test_new_schemas_become_the_next_versions_and_the_old_ones_stay() -> None:
    world = put(put(a_world(), avro_topic(schema("a"))), avro_topic(schema("a", "b")))
    avro = avro_of(world)
    assert [(one.number, one.schema) for one in avro.versions] == [(1, schema("a")), (2, schema("a", "b"))]
    assert avro.number_of(fingerprint(schema("a"))) == 1
    assert avro.number_of("0") is None
    assert avro.version(2) == avro.newest


def test_a_schema_that_is_there_already_makes_no_new_version() -> None:
    world = put(put(a_world(), avro_topic(schema("a"))), avro_topic(schema("a", "b")))
    spaced = json.dumps(json.loads(schema("a")), indent=2)
    assert avro_of(put(world, avro_topic(spaced))) == avro_of(world)


def test_other_members_change_without_the_schemas() -> None:
    world = put(a_world(), avro_topic(schema("a")))
    stood = world.snapshot.topics[ORDERS]
    changed = put(world, msgspec.structs.replace(stood, description="new"))
    assert avro_of(changed) == avro_of(world)


@pytest.mark.parametrize(
    ("compatibility", "first", "then", "why"),
    [
        (
            "backward",
            schema("a"),
            schema("a", "b", default=False),
            "cannot read what version 1 wrote: the top: the field b is new",
        ),
        ("forward", schema("a", "b", default=False), schema("a"), "version 1 cannot read what it writes"),
        ("full", schema("a"), schema("a", "b", default=False), "cannot read what version 1 wrote"),
        ("full", schema("a", "b", default=False), schema("a"), "version 1 cannot read"),
    ],
)
def test_a_schema_that_does_not_agree_is_refused(compatibility: str, first: str, then: str, why: str) -> None:
    world = put(a_world(), avro_topic(first, compatibility))
    told = refused(world, avro_topic(then, compatibility))
    assert told.startswith("avro.schema: ") and why in told
    assert avro_of(put(world, avro_topic(then, "none"))).newest.number == 2


@pytest.mark.parametrize(
    ("compatibility", "first", "then"),
    [
        ("backward", schema("a", "b", default=False), schema("a")),
        ("forward", schema("a"), schema("a", "b", default=False)),
        ("full", schema("a"), schema("b")),
    ],
)
def test_a_schema_that_agrees_is_taken(compatibility: str, first: str, then: str) -> None:
    world = put(put(a_world(), avro_topic(first, compatibility)), avro_topic(then, compatibility))
    assert avro_of(world).newest.number == 2


def test_transitive_looks_at_every_version() -> None:
    optional = '{"type":"record","name":"R","fields":[]}'
    world = put(put(a_world(), avro_topic(schema("a"))), avro_topic(optional))
    text = '{"type":"record","name":"R","fields":[{"name":"a","type":"string","default":""}]}'
    assert "version 1 wrote" in refused(world, avro_topic(text, "backward-transitive"))
    assert avro_of(put(world, avro_topic(text))).newest.number == 3


def test_a_topic_keeps_its_schemas_until_it_ends() -> None:
    world = put(a_world(), avro_topic(schema("a")))
    assert refused(world, a_topic()).startswith("avro: a topic keeps its Avro schemas")
    assert put(without(world, Topic, "orders"), a_topic()).snapshot.topics[ORDERS].avro is None


def test_a_topic_may_become_avro_later() -> None:
    assert avro_of(put(a_world(a_topic()), avro_topic(schema("a")))).newest.number == 1


@pytest.mark.parametrize(
    ("topic", "path"),
    [
        (avro_topic('{"type":"record"}'), "avro.schema"),
        (avro_topic("{"), "avro.schema"),
        (a_topic(avro=AvroPayload(versions=())), "avro.schema"),
        (msgspec.structs.replace(avro_topic(schema("a")), schema={"type": "object"}), "schema"),
    ],
)
def test_what_cannot_be_is_refused_with_its_field(topic: Topic, path: str) -> None:
    with pytest.raises(InvalidDocument) as found:
        check([topic])
    assert path in [fault.attribute for fault in found.value.faults]


def test_a_topic_has_a_number_of_versions_at_the_most() -> None:
    versions = tuple(AvroVersion(n, f'{{"type":"fixed","name":"F","size":{n}}}') for n in range(1, MAX_VERSIONS + 1))
    world = a_world(a_topic(avro=AvroPayload(versions=versions, compatibility=Compatibility.NONE)))
    assert f"at most {MAX_VERSIONS}" in refused(world, avro_topic('"int"', "none"))


def test_it_is_kept_as_it_is_and_topics_from_before_are_read() -> None:
    stored = put(a_world(), avro_topic(schema("a"))).snapshot.topics[ORDERS]
    assert document_of("topic", text_of(stored)) == stored
    before = json.loads(text_of(a_topic()))
    before.pop("avro")
    assert document_of("topic", json.dumps(before)) == a_topic()
