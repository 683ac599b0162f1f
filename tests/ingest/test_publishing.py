"""Publishing over real HTTP: every form, every refusal."""

from __future__ import annotations

import json
import select
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api_process import CLOUDEVENT, ApiProcess, an_api
from tests.hub import Answer
from tests.server.wire import connect, read_answer

STRUCTURED = "application/cloudevents+json"
BATCH = "application/cloudevents-batch+json"
SCHEMA = {"type": "object", "required": ["total"], "properties": {"total": {"type": "number"}}}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    with an_api(tmp_path_factory.mktemp("publishing"), ingest={"batch_events": 50, "batch_bytes": "64KiB"}) as api:
        for name, body in (("small", {"maxEventBytes": 300}), ("typed", {"schema": SCHEMA}), ("ns:orders", {})):
            assert api.call("PUT", f"/api/topics/{name}", body).status == 201
        yield api


@pytest.fixture
def topic(api: ApiProcess, request: pytest.FixtureRequest) -> str:
    """A topic of the test's own."""
    name = request.node.name.replace("[", "-").rstrip("]")[:190]
    assert api.call("PUT", f"/api/topics/{name}", {}).status == 201
    return name


def is_problem(answer: Answer, status: int, code: str) -> Any:
    assert (answer.status, answer.json["code"]) == (status, code), answer.body
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json.keys() >= {"type", "title", "status", "detail", "instance", "code"}
    return answer.json


def test_a_structured_event_is_durable_and_comes_back_as_it_was(api: ApiProcess, topic: str) -> None:
    answer = api.publish(topic, CLOUDEVENT, STRUCTURED)
    assert (answer.status, answer.json["accepted"]) == (202, 1)
    assert api.events(topic) == [CLOUDEVENT]
    assert api.lines(topic)[0]["cursor"] == answer.json["first"] == answer.json["last"]


def test_a_binary_event_keeps_its_attributes_and_exact_payload(api: ApiProcess, topic: str) -> None:
    headers = {"ce_specversion": "1.0", "ce_id": "7", "ce_source": "/shop", "ce_type": "order.created"}
    assert api.publish(topic, b'{"total":   5.00}', "application/json", **headers).status == 202
    line = api.call("GET", f"/api/topics/{topic}/events").body.splitlines()[0]
    assert b'"data":{"total":   5.00}' in line
    assert json.loads(line)["event"]["id"] == "7"


def test_a_batch_is_stored_whole_and_in_order(api: ApiProcess, topic: str) -> None:
    answer = api.publish(topic, [{**CLOUDEVENT, "id": str(n)} for n in range(10)], BATCH)
    assert (answer.status, answer.json["accepted"]) == (202, 10)
    assert [event["id"] for event in api.events(topic)] == [str(n) for n in range(10)]


def test_plain_json_becomes_an_event_of_the_topic(api: ApiProcess, topic: str) -> None:
    assert api.publish(topic, {"total": 5}).status == 202
    (event,) = api.events(topic)
    assert (event["data"], event["type"], event["source"]) == ({"total": 5}, topic, f"/api/topics/{topic}")


def test_lines_of_json_become_an_event_each(api: ApiProcess, topic: str) -> None:
    body = b'{"total": 1}\n\n' + json.dumps(CLOUDEVENT).encode() + b"\n"
    assert api.publish(topic, body, "application/x-ndjson").json["accepted"] == 2
    assert [event["data"]["total"] for event in api.events(topic)] == [1, 5]


def test_an_empty_batch_is_accepted_and_stores_nothing(api: ApiProcess, topic: str) -> None:
    assert api.publish(topic, [], BATCH).json == {"accepted": 0}
    assert api.events(topic) == []


def test_a_topic_of_a_namespace_is_published_to_by_its_full_name(api: ApiProcess) -> None:
    assert api.publish("ns:orders", {"total": 5}).status == 202


def test_an_unknown_topic_is_not_found(api: ApiProcess) -> None:
    assert "nowhere" in is_problem(api.publish("nowhere", {}), 404, "not-found")["detail"]


def test_what_is_no_name_is_refused(api: ApiProcess) -> None:
    is_problem(api.publish("no%20name", {}), 400, "malformed")


def test_broken_json_is_refused(api: ApiProcess) -> None:
    is_problem(api.publish("small", b'{"total": '), 400, "malformed")
    is_problem(api.publish("small", b'{"specversion": ', STRUCTURED), 400, "malformed")
    is_problem(api.publish("small", b"[{}", BATCH), 400, "malformed")


def test_invalid_utf8_is_refused(api: ApiProcess) -> None:
    is_problem(api.publish("small", b'{"name": "\xff\xfe"}'), 400, "malformed")


def test_an_unknown_format_of_events_is_unsupported(api: ApiProcess) -> None:
    is_problem(api.publish("small", b"<event/>", "application/cloudevents+xml"), 415, "unsupported-format")


def test_a_packed_body_is_unsupported(api: ApiProcess) -> None:
    is_problem(api.publish("small", b"\x1f\x8b", content_encoding="gzip"), 415, "unsupported-format")


def test_an_oversized_event_is_refused_by_the_topics_own_limit(api: ApiProcess) -> None:
    assert api.publish("small", {"note": "x" * 200}).status == 202
    is_problem(api.publish("small", {"note": "x" * 300}), 413, "too-large")


def test_an_oversized_event_inside_a_batch_refuses_the_batch(api: ApiProcess, topic: str) -> None:
    before = api.events("small")
    batch = [{**CLOUDEVENT, "id": "1"}, {**CLOUDEVENT, "id": "2", "data": "x" * 300}]
    assert "event 1" in is_problem(api.publish("small", batch, BATCH), 413, "too-large")["detail"]
    assert api.events("small") == before


def test_a_body_above_every_limit_is_refused_before_it_is_read(api: ApiProcess, topic: str) -> None:
    is_problem(api.publish(topic, b"x" * 200_000, "text/plain"), 413, "too-large")


def test_too_many_events_in_a_batch_are_refused(api: ApiProcess, topic: str) -> None:
    batch = [{**CLOUDEVENT, "id": str(n)} for n in range(51)]
    is_problem(api.publish(topic, batch, BATCH), 413, "too-large")
    assert api.events(topic) == []


def test_every_fault_of_a_batch_is_named_and_nothing_is_stored(api: ApiProcess, topic: str) -> None:
    batch = [CLOUDEVENT, {"specversion": "1.0", "id": "2", "type": "t"}, {**CLOUDEVENT, "source": ""}]
    problem = is_problem(api.publish(topic, batch, BATCH), 400, "invalid-event")
    assert {(fault["index"], fault["attribute"]) for fault in problem["errors"]} == {(1, "source"), (2, "source")}
    assert all(fault.keys() == {"index", "attribute", "code", "detail"} for fault in problem["errors"])
    assert api.events(topic) == []


def test_data_must_satisfy_the_topics_schema(api: ApiProcess) -> None:
    assert api.publish("typed", {"total": 5}).status == 202
    problem = is_problem(api.publish("typed", {"total": "five"}), 400, "invalid-event")
    assert (problem["errors"][0]["attribute"], problem["errors"][0]["code"]) == ("data", "schema")
    assert len(api.events("typed")) == 1


def test_a_changed_topic_takes_effect_with_the_next_publish(api: ApiProcess, topic: str) -> None:
    assert api.publish(topic, {"note": "x" * 500}).status == 202
    assert api.call("PUT", f"/api/topics/{topic}", {"maxEventBytes": 100}).status == 200
    is_problem(api.publish(topic, {"note": "x" * 500}), 413, "too-large")


def test_a_deleted_topic_takes_no_more(api: ApiProcess, topic: str) -> None:
    assert api.call("DELETE", f"/api/topics/{topic}").status == 204
    is_problem(api.publish(topic, {}), 404, "not-found")


def test_a_full_log_answers_503_and_says_when_to_try_again(tmp_path: Path) -> None:
    with an_api(tmp_path, log={"disk_reserve": 1 << 62}) as api:
        assert api.call("PUT", "/api/topics/orders", {}).status == 201
        answer = api.publish("orders", {})
        is_problem(answer, 503, "log-unavailable")
        assert int(answer.headers["retry-after"]) >= 1


def test_what_was_acknowledged_is_there_after_a_restart(tmp_path: Path) -> None:
    with an_api(tmp_path) as api:
        api.call("PUT", "/api/topics/orders", {})
        assert api.publish("orders", CLOUDEVENT, STRUCTURED).status == 202
    with an_api(tmp_path) as api:
        assert api.events("orders") == [CLOUDEVENT]


def test_bodies_that_are_half_read_are_bounded_over_all_connections(tmp_path: Path) -> None:
    with an_api(tmp_path, ingest={"reading_bytes": "100KiB"}) as api:
        api.call("PUT", "/api/topics/orders", {"maxEventBytes": "1MiB"})
        half = b"POST /api/topics/orders/events HTTP/1.1\r\nhost: localhost\r\ncontent-length: 90000\r\n\r\n" + b" " * 80_000
        with connect(api.port) as first, connect(api.port) as second:
            first.sendall(half)
            second.sendall(half)
            # One of the two finds no room; which one, only the kernel knows.
            ready, _, _ = select.select([first, second], [], [], 20)
            refused = read_answer(ready[0])
            assert (refused.status, refused.json["code"], refused.headers["retry-after"]) == (503, "overloaded", "1")
            other = second if ready[0] is first else first
            other.sendall(b" " * 9_999 + b"1")
            assert read_answer(other).status == 202
