from __future__ import annotations

import msgspec
import pytest

from tests.builders import a_name, a_topic, an_event, an_exposure
from tidings import config
from tidings.access.principals import Principal, Right
from tidings.clock import Instant
from tidings.errors import Forbidden, InvalidEvent, NotFound, TooLarge
from tidings.events.avro.schema import compiled
from tidings.events.model import key_hash
from tidings.events.stored import event_from
from tidings.ingest.admission import Admissions, Arrival, check_publisher, drafts_of, events_of
from tidings.log.position import TopicNumber
from tidings.registry.avro import AvroPayload, AvroVersion
from tidings.registry.feeds import LineLimit, TopicFeed
from tidings.registry.model import Exposure, Snapshot, Topic

SETTINGS = config.load(environ={})
SHOP = Principal("shop", frozenset({Right.PUBLISH}))


def admissions(*topics: Topic, exposures: tuple[Exposure, ...] = (), revision: int = 1) -> Admissions:
    snapshot = Snapshot(
        revision=revision, topics={one.name: one for one in topics}, exposures={one.topic: one for one in exposures}
    )
    return Admissions(lambda: snapshot, SETTINGS.topics, SETTINGS.ingest)


def arrival(body: bytes, content_type: bytes = b"application/json") -> Arrival:
    return Arrival(SHOP, Instant(1_000_000), [(b"content-type", content_type)], body, lambda: "made-up")


def test_what_a_topic_leaves_open_comes_from_the_settings() -> None:
    plain = admissions(a_topic()).of("orders")
    assert (plain.limits.max_event_bytes, plain.window, plain.schema) == (SETTINGS.topics.max_event_bytes, None, None)
    own = admissions(a_topic(max_event_bytes=10, duplicates="1h")).of("orders")
    assert (own.limits.max_event_bytes, own.window) == (10, 3600.0)


def test_a_body_may_be_as_large_as_the_larger_of_batch_and_event() -> None:
    assert admissions(a_topic()).of("orders").largest_body == SETTINGS.ingest.batch_bytes
    assert admissions(a_topic(max_event_bytes=8 << 20)).of("orders").largest_body == 8 << 20


def test_admissions_are_kept_until_the_registry_changes() -> None:
    held = {"now": Snapshot(revision=1, topics={a_name(): a_topic()})}
    every = Admissions(lambda: held["now"], SETTINGS.topics, SETTINGS.ingest)
    first = every.of("orders")
    assert every.of("orders") is first
    held["now"] = Snapshot(revision=2, topics={a_name(): a_topic(max_event_bytes=10)})
    assert every.of("orders").limits.max_event_bytes == 10


def test_an_unknown_topic_is_not_found_and_not_remembered() -> None:
    every = admissions()
    for _ in range(2):
        with pytest.raises(NotFound, match="nowhere"):
            every.of("nowhere")


@pytest.mark.parametrize(
    ("rights", "topics", "publishers", "allowed"),
    [
        ({Right.PUBLISH}, ("*",), None, True),
        ({Right.PUBLISH}, ("orders",), ("shop",), True),
        ({Right.PUBLISH}, ("payments",), None, False),
        ({Right.PUBLISH}, ("*",), ("crm",), False),
        ({Right.READ, Right.SUBSCRIBE}, ("*",), None, False),
        ({Right.ADMIN}, ("payments",), None, True),
    ],
)
def test_publishing_takes_the_right_the_topic_and_the_exposure(
    rights: set[Right], topics: tuple[str, ...], publishers: tuple[str, ...] | None, allowed: bool
) -> None:
    exposures = () if publishers is None else (an_exposure(publishers=publishers),)
    admission = admissions(a_topic(), exposures=exposures).of("orders")
    caller = Principal("shop", frozenset(rights), topics)
    if allowed:
        check_publisher(admission, caller)
    else:
        with pytest.raises(Forbidden):
            check_publisher(admission, caller)


def test_a_plain_event_is_named_after_its_topic() -> None:
    (event,) = events_of(admissions(a_topic("ns:orders")).of("ns:orders"), arrival(b"[1, 2]"))
    assert (event.id, event.source, event.type, event.data) == ("made-up", "/api/topics/ns:orders", "ns:orders", b"[1, 2]")


def test_drafts_hold_the_event_its_topic_its_time_and_its_key() -> None:
    admission = admissions(a_topic(number=TopicNumber(7), key_attribute="customer")).of("orders")
    event = an_event(b"1", customer="c-1", subject="s")
    (draft,) = drafts_of(admission, [event], Instant(5))
    assert (draft.topic, draft.at, draft.key_hash) == (7, 5, key_hash("c-1"))
    assert event_from(draft.head, draft.data) == event


def test_every_event_that_breaks_the_schema_is_named() -> None:
    admission = admissions(a_topic(schema={"type": "number"})).of("orders")
    with pytest.raises(InvalidEvent) as refused:
        drafts_of(admission, [an_event(b"1"), an_event(b'"a"'), an_event(None)], Instant(5))
    assert [fault.index for fault in refused.value.faults] == [1, 2]


def test_the_line_of_an_avro_event_is_as_long_as_its_json() -> None:
    text = (
        '{"type":"record","name":"R","fields":[{"name":"some_long_name_of_a_field","type":{"type":"array","items":"boolean"}}]}'
    )
    schema = compiled(text)
    topic = a_topic(avro=AvroPayload(versions=(AvroVersion(1, text),)), feed=TopicFeed(line_limit=LineLimit.REJECT))
    admission = admissions(topic).of("orders")
    short, long = (
        msgspec.structs.replace(an_event(schema.from_value({"some_long_name_of_a_field": [True] * n})), avro=schema.fingerprint)
        for n in (1_000, 15_000)
    )
    assert drafts_of(admission, [short], Instant(5))
    with pytest.raises(TooLarge, match="too long for a feed"):
        drafts_of(admission, [long], Instant(5))
