"""Streams of the Horizon door over HTTP, with a real deliver process behind it (HOR-T31 to HOR-T37, HOR-T49, HOR-179)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.doors.horizon.worlds import Door, a_horizon_event, a_rover, a_specification, a_stream, an_entry, tokens
from tests.doors.sse.worlds import Reader, Streaming, streaming
from tests.polling import until
from tidings.doors.horizon.names import subscription_id

PROVIDER, CONSUMER, STRANGER = "hub--team--shop", "hub--team--billing", "hub--other--x"
TYPES = (
    "plain.v1",
    "frames.v1",
    "idle.v1",
    "second.v1",
    "resumed.v1",
    "own.v1",
    "cut.v1",
    "referred.v1",
    "shown.v1",
    "page.v1",
    "pretty.v1",
)
PAGE = "https://page.example"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Streaming]:
    access = tokens(PROVIDER, CONSUMER, STRANGER)
    folder = tmp_path_factory.mktemp("horizon")
    with streaming(folder, access=access, sse={"idle": "500ms", "origins": [PAGE]}) as world:
        streams = [a_stream(one) for one in TYPES if one != "referred.v1"]
        referring = {**a_stream("referred.v1"), "payloadType": "dataref", "trigger": {"responseFilter": ["total"]}}
        Door(world.api, PROVIDER).applied(
            a_rover("shop", exposures=[{"eventType": one} for one in (*TYPES, "called.v1")]),
            a_rover("billing", subscriptions=[*streams, referring, an_entry("called.v1")]),
            *(a_specification(one) for one in (*TYPES, "called.v1")),
        )
        yield world


def subscribed(event_type: str) -> str:
    return subscription_id("playground", event_type, CONSUMER)


def publish(world: Streaming, event_type: str, count: int, first: int = 1, **headers: str) -> None:
    for n in range(first, first + count):
        answer = Door(world.api, PROVIDER).publish(a_horizon_event(event_type, data={"n": n}), **headers)
        assert answer.status == 201, answer.body
    world.route(world.lane(subscribed(event_type)))


def read(world: Streaming, event_type: str, query: str = "", accept: str | None = None, **headers: str) -> Reader:
    sent = {"authorization": f"Bearer {CONSUMER}", **({"accept": accept} if accept else {}), **headers}
    return Reader(world.api, f"/horizon/v1/playground/sse/{subscribed(event_type)}{query}", **sent)


@pytest.mark.parametrize("accept", [None, "*/*", "application/stream+json", "text/event-stream, */*"])
def test_hor_t31_plain_lines_unless_exactly_frames_are_asked_for(world: Streaming, accept: str | None) -> None:
    publish(world, "plain.v1", 2)
    answer = read(world, "plain.v1", "?maxNumber=2", accept).answer()
    assert answer.headers["content-type"] == "application/stream+json"
    assert (answer.headers["cache-control"], answer.headers["x-accel-buffering"]) == ("no-cache", "no")
    assert [json.loads(line)["data"]["n"] for line in answer.body.splitlines()] == [1, 2]


def test_hor_t31_frames_have_their_message_id_and_the_event_on_one_line(world: Streaming) -> None:
    publish(world, "frames.v1", 1)
    answer = read(world, "frames.v1", "?maxNumber=1", "text/event-stream").answer()
    assert answer.headers["content-type"] == "text/event-stream"
    id_line, data_line, empty, end = answer.body.split(b"\n")
    assert id_line.startswith(b"id: ") and data_line.startswith(b"data: ") and (empty, end) == (b"", b"")
    event = json.loads(data_line[6:])
    assert list(event) == ["id", "type", "source", "specversion", "datacontenttype", "time", "data"]


@pytest.mark.parametrize("accept", ["text/event-stream", "application/stream+json"])
def test_ft_37_a_pretty_payload_is_one_compact_line(world: Streaming, accept: str) -> None:
    pretty = json.dumps(a_horizon_event("pretty.v1", data={"b": [1, "x  y\n"], "a": {}}), indent=4).encode()
    assert Door(world.api, PROVIDER).publish(pretty).status == 201
    world.route(world.lane(subscribed("pretty.v1")))
    body = read(world, "pretty.v1", "?maxNumber=1", accept).answer().body
    assert b',"data":{"b":[1,"x  y\\n"],"a":{}}' in body


def test_hor_t32_nothing_until_the_limit_is_504_and_after_an_event_a_clean_end(world: Streaming) -> None:
    silent = read(world, "idle.v1").answer()
    assert (silent.status, silent.json["status"], silent.headers["content-type"]) == (504, 504, "application/problem+json")
    publish(world, "idle.v1", 1)
    spoke = read(world, "idle.v1").answer()
    assert (spoke.status, len(spoke.body.splitlines())) == (200, 1)


def test_hor_t33_a_second_stream_ends_the_first(world: Streaming) -> None:
    publish(world, "second.v1", 1)
    first = read(world, "second.v1")
    assert json.loads(first.response.readline())["data"]["n"] == 1
    second = read(world, "second.v1", "?maxNumber=1")
    publish(world, "second.v1", 1, first=2)
    assert json.loads(second.answer().body)["data"]["n"] == 2
    assert first.answer().status == 200


def test_hor_t34_a_stream_goes_on_after_the_last_event_seen(world: Streaming) -> None:
    publish(world, "resumed.v1", 10)
    frames = read(world, "resumed.v1", "?maxNumber=10", "text/event-stream").frames(10)
    resumed = read(world, "resumed.v1", "?maxNumber=7", "text/event-stream", last_event_id=frames[2][0]).frames(7)
    assert [event["data"]["n"] for _, event in resumed] == [4, 5, 6, 7, 8, 9, 10]
    assert [event["httpHeaders"]["x-pubsub-offset-id"] for _, event in resumed] == [[message] for message, _ in resumed]
    assert [message for message, _ in resumed] == [message for message, _ in frames[3:]]


def test_plain_lines_have_no_message_id_so_the_events_own_id_is_good_for_going_on(world: Streaming) -> None:
    publish(world, "own.v1", 5)
    seen = [json.loads(line) for line in read(world, "own.v1", "?maxNumber=3").answer().body.splitlines()]
    lines = read(world, "own.v1", "?maxNumber=4", last_event_id=seen[0]["id"]).answer().body.splitlines()
    assert [json.loads(line)["data"]["n"] for line in lines] == [2, 3, 4, 5]


def test_hor_t35_streams_are_cut_where_their_client_asks(world: Streaming) -> None:
    publish(world, "cut.v1", 5)
    assert len(read(world, "cut.v1", "?maxNumber=2").answer().body.splitlines()) == 2
    until(lambda: world.delivery.lane(world.lane(subscribed("cut.v1"))).delivered == 2)
    assert len(read(world, "cut.v1", "?maxBytes=1").answer().body.splitlines()) == 1
    assert len(read(world, "cut.v1", "?maxMinutes=0.003").answer().body.splitlines()) == 2
    for bad in ("maxNumber=-1", "maxBytes=x", "maxMinutes=", "maxNumber=1.5"):
        assert read(world, "cut.v1", f"?{bad}").answer().status == 400


def test_hor_t36_streams_are_for_their_subscriber(world: Streaming) -> None:
    path = f"/horizon/v1/playground/sse/{subscribed('plain.v1')}"
    assert Door(world.api, STRANGER).call("GET", path).status == 403
    assert Door(world.api, CONSUMER).call("GET", f"/horizon/v1/playground/sse/{'0' * 40}").status == 403
    assert Door(world.api).call("GET", path).status == 401
    assert Door(world.api, CONSUMER).call("GET", f"/horizon/v1/playground/sse/{subscribed('called.v1')}").status == 409
    assert Door(world.api, CONSUMER).call("POST", path).status == 405


def test_hor_t37_a_reference_leads_to_the_filtered_payload(world: Streaming) -> None:
    door, stranger = Door(world.api, CONSUMER), Door(world.api, STRANGER)
    event = a_horizon_event("referred.v1", data={"total": 5, "secret": 1}, dataref="http://past.the.filter/")
    assert Door(world.api, PROVIDER).publish(event).status == 201
    world.route(world.lane(subscribed("referred.v1")))
    got = json.loads(read(world, "referred.v1", "?maxNumber=1").answer().body)
    assert "data" not in got
    path = got["dataref"].partition("/horizon/")
    assert path[0] == f"http://127.0.0.1:{world.api.port}"
    fetched = door.call("GET", f"/horizon/{path[2]}")
    # Routed by hand, without its projection: the whole payload.
    assert (fetched.status, fetched.json, fetched.headers["content-type"]) == (200, event["data"], "application/json")
    assert stranger.call("GET", f"/horizon/{path[2]}").status == 403
    strange = f"/horizon/v1/playground/data/{subscribed('referred.v1')}/5a1e9d2c-0000-4000-8000-000000000000"
    assert door.call("GET", strange).status == 404


def test_headers_of_the_publisher_are_shown_on_request(world: Streaming) -> None:
    publish(world, "shown.v1", 1, x_foo="bar", cookie="no")
    headers = json.loads(read(world, "shown.v1", "?maxNumber=1&includeHttpHeaders=true").answer().body)["httpHeaders"]
    assert (headers["x-foo"], "cookie" in headers) == (["bar"], False)
    assert headers["x-subscription-id"] == [subscribed("shown.v1")]


def test_hor_t49_the_public_paths_name_type_and_environment(world: Streaming) -> None:
    def status(path: str) -> int:
        return Door(world.api, CONSUMER).call("GET", path).status

    mine = subscribed("idle.v1")
    assert status(f"/playground/horizon/sse/v1/idle.v1/{mine}") == 504
    assert status(f"/playground/horizon/sse/v1/plain.v1/{mine}") == 404
    assert status(f"/horizon/sse/v1/idle.v1/{mine}") == 403


def test_health_needs_no_token(world: Streaming) -> None:
    for path in ("/horizon/v1/playground/sse", "/horizon/sse/v1"):
        answer = world.api.call("HEAD", path)
        assert (answer.status, answer.headers["x-health-check-timestamp"][-1]) == (204, "Z")


def test_a_stream_is_terminated_by_its_subscriber(world: Streaming) -> None:
    publish(world, "page.v1", 1)
    reader = read(world, "page.v1")
    assert reader.response.readline()
    path = f"/horizon/v1/playground/sse/{subscribed('page.v1')}/terminate"
    assert Door(world.api, STRANGER).call("POST", path).status == 403
    assert Door(world.api, CONSUMER).call("POST", path).status == 200
    assert reader.answer().body == b""


def test_a_page_reads_with_a_ticket_that_is_good_once(world: Streaming) -> None:
    publish(world, "page.v1", 1, first=2)
    path = f"/horizon/v1/playground/sse/{subscribed('page.v1')}"
    given = Door(world.api, CONSUMER).call("POST", f"{path}/ticket", headers={"origin": PAGE})
    assert (given.status, given.headers["access-control-allow-origin"]) == (200, PAGE)
    ticket = given.json["ticket"]
    frames = Reader(world.api, f"{path}?ticket={ticket}&maxNumber=1", accept="text/event-stream", origin=PAGE)
    assert frames.response.getheader("access-control-allow-origin") == PAGE
    assert frames.numbers(1) == [2]
    assert Reader(world.api, f"{path}?ticket={ticket}", origin=PAGE).answer().status == 401
    again = Reader(world.api, f"{path}?ticket={ticket}", origin="https://elsewhere.example").answer()
    assert (again.status, "access-control-allow-origin" in again.headers) == (403, False)
    other = Door(world.api, CONSUMER).call("POST", f"{path}/ticket").json["ticket"]
    elsewhere = f"/horizon/v1/playground/sse/{subscribed('idle.v1')}?ticket={other}"
    assert world.api.call("GET", elsewhere).status == 401


def test_a_page_may_ask_before_it_asks(world: Streaming) -> None:
    path = f"/horizon/v1/playground/sse/{subscribed('page.v1')}/ticket"
    asked = {"origin": PAGE, "access-control-request-method": "POST"}
    assert world.api.call("OPTIONS", path, headers=asked).headers["access-control-allow-headers"]
    assert world.api.call("OPTIONS", path, headers={**asked, "origin": "https://elsewhere.example"}).status == 405


def test_comments_keep_a_stream_open_where_they_are_wanted(tmp_path: Path) -> None:
    with streaming(tmp_path, sse={"idle": "700ms", "keep_alive": "100ms"}) as world:
        door: Any = Door(world.api)
        door.applied(
            a_rover("shop", exposures=[{"eventType": "orders.v1"}], subscriptions=[a_stream("orders.v1")]),
            a_specification("orders.v1"),
        )
        mine = subscription_id("playground", "orders.v1", "hub--team--shop")
        path = f"/horizon/v1/playground/sse/{mine}"
        frames = Reader(world.api, path, accept="text/event-stream").answer()
        assert (frames.status, frames.body.startswith(b": keep-alive\n\n")) == (200, True)
        assert Reader(world.api, path).answer().status == 504
