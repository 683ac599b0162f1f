"""Publishing over HTTP: the order of checks, the bodies of refusals, what is stored (HOR-T02 to HOR-T09, HOR-T40 in part)."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.api_process import ApiProcess, an_api
from tests.doors.horizon.worlds import Door, a_horizon_event, a_rover, a_specification, exposing, tokens
from tests.hub import Answer
from tidings.doors.horizon.publish.event_fields import is_sound, violations
from tidings.errors import LogUnavailable
from tidings.events.stored import event_from, note_in
from tidings.log.port import Entry, Limit
from tidings.log.sqlite.reader import SqliteLogReader
from tidings.log.sqlite.writer import SqliteLogWriter

OWNER, MORE, FAR, OTHER = "hub--team--shop", "hub--team--more", "hub--team--far", "hub--other--x"
SCHEMA = {
    "type": "object",
    "properties": {"total": {"type": "object", "properties": {"amount": {"type": "number"}}}, "id": {"type": "string"}},
}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    with an_api(tmp_path_factory.mktemp("api"), access=tokens(OWNER, MORE, FAR, OTHER)) as running:
        owner = Door(running, OWNER)
        far = a_rover("far")
        far["spec"]["zone"] = "aws"
        orders = {"eventType": "orders.v1", "additionalPublisherIds": [MORE, FAR]}
        documents = [
            a_rover("shop", exposures=[orders, {"eventType": "checked.v1"}, {"eventType": "bare.v1"}]),
            far,
            a_specification("orders.v1"),
            a_specification("checked.v1", specification=SCHEMA),
        ]
        owner.applied(*documents)
        yield running


@pytest.fixture
def owner(api: ApiProcess) -> Door:
    return Door(api, OWNER)


def stored(door: Door, event_type: str = "orders.v1") -> list[Any]:
    name = f"horizon%2F{door.environment}:{event_type}"
    root = Door(door.api, "root")
    answer = root.call("GET", f"/api/topics/{name}/events?limit=1000")
    assert answer.status == 200, answer.body
    return [json.loads(line)["event"] for line in answer.body.splitlines() if b'"event"' in line]


def everything(api: ApiProcess) -> Sequence[Entry]:
    reader = SqliteLogReader(api.data)
    return reader.scan({0: 0}, reader.ends(), Limit(10_000, 1 << 30)).entries


def problem(answer: Answer, status: int) -> dict[str, Any]:
    assert answer.status == status, answer.body
    assert answer.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = answer.json
    assert {"type", "title", "status", "detail"} <= body.keys() <= {"type", "title", "status", "detail", "violations"}
    assert body["type"] == "about:blank" and body["status"] == status
    return body


def test_a_valid_event_of_the_owner_is_stored_and_answered_with_an_empty_201(owner: Door) -> None:
    event = a_horizon_event(subject="not kept", extension=5)
    answer = owner.publish(event)
    assert (answer.status, answer.body) == (201, b"")
    assert len(answer.headers["x-b3-traceid"]) == 16
    (found,) = [one for one in stored(owner) if one["id"] == event["id"]]
    assert found["data"] == event["data"] and "subject" not in found and "extension" not in found
    assert found["time"].endswith("Z") and len(found["time"]) == 24


def test_every_publish_path_leads_to_the_same(owner: Door) -> None:
    for path in ("/horizon/v1/playground/events/", "/playground/horizon/events/v1", "/playground/horizon/publish/v1"):
        assert owner.call("POST", path, a_horizon_event()).status == 201
    # Without an environment the default one is meant, where nothing is exposed.
    assert owner.call("POST", "/horizon/events/v1", a_horizon_event()).status == 404


def test_health_is_told_without_a_token(api: ApiProcess) -> None:
    answer = api.call("HEAD", "/horizon/v1/playground/events")
    assert answer.status == 204 and answer.headers["x-health-check-timestamp"].endswith("Z")


def test_hor_t03_a_type_that_was_never_exposed(owner: Door) -> None:
    body = problem(owner.publish(a_horizon_event("unknown.v1")), 404)
    assert body["title"] == "The event type unknown.v1 could not be found."
    incomplete = problem(owner.publish(a_horizon_event("bare.v1")), 404)
    assert "no EventSpecification" in incomplete["detail"]


def test_hor_t04_a_foreign_client_an_additional_publisher_and_one_from_another_zone(api: ApiProcess) -> None:
    body = problem(Door(api, OTHER).publish(a_horizon_event()), 403)
    assert body["detail"] == f"The event type does not belong to publisher with id '{OTHER}'"
    assert Door(api, MORE).publish(a_horizon_event()).status == 201
    assert Door(api, FAR).publish(a_horizon_event()).status == 403


def test_hor_t05_an_invalid_event_is_told_all_its_violations(owner: Door) -> None:
    event = {
        "id": "invalid",
        "type": "invalid_type!",
        "time": "invalid",
        "specversion": "",
        "data": {"foo": "bar"},
        "datacontenttype": "application/json",
        "dataref": "  ",
    }
    body = problem(owner.publish(event), 400)
    assert body["title"] == "Event did not pass the validation."
    assert len(body["violations"]) == 7 and body["detail"].count("Violation: ") == 7
    fields = [one["path"] for one in body["violations"]]
    assert fields == sorted(fields)


@pytest.mark.parametrize(
    ("change", "many"),
    [
        ({"id": None}, 2),
        ({"type": None}, 2),
        ({"source": None}, 2),
        ({"specversion": None}, 2),
        ({"specversion": ""}, 2),
        ({"specversion": " "}, 1),
        ({"id": " "}, 2),
        ({"source": " "}, 1),
        ({"data": None}, 1),
        ({"data": None, "dataref": " "}, 1),
        ({"data": None, "dataref": "https://x"}, 0),
        ({"data": False}, 0),
        ({"dataref": 5}, 1),
        ({"datacontenttype": 5}, 1),
        ({"time": "2024-02-30T00:00:00Z"}, 1),
    ],
)
def test_each_broken_rule_counts_and_the_quick_look_agrees(change: dict[str, Any], many: int) -> None:
    event = {**a_horizon_event(), **change}
    assert len(violations(event)) == many
    assert is_sound(event) is (many == 0)


def test_hor_t06_a_schema_broken_at_two_places(owner: Door) -> None:
    before = len(stored(owner, "checked.v1"))
    event = a_horizon_event("checked.v1", data={"total": {"amount": "x"}, "id": 5})
    body = problem(owner.publish(event), 400)
    assert body["title"] == f"Event of type checked.v1 with id {event['id']} does not comply with the given schema."
    assert {one["path"] for one in body["violations"]} == {"/total/amount", "/id"}
    assert len(stored(owner, "checked.v1")) == before
    good = {"total": {"amount": 1}, "id": "x"}
    for fine in (good, json.dumps(good)):
        assert owner.publish(a_horizon_event("checked.v1", data=fine)).status == 201
    assert owner.publish(a_horizon_event("checked.v1", data=json.dumps({"id": 5}))).status == 400
    assert owner.publish(a_horizon_event("checked.v1", data="no json")).status == 400
    assert owner.publish(a_horizon_event("checked.v1", data="text", datacontenttype="text/plain")).status == 201
    assert owner.publish(a_horizon_event("checked.v1", data=None, dataref="https://x")).status == 201


def test_hor_t07_data_of_exactly_the_limit_and_one_byte_more(owner: Door) -> None:
    assert owner.publish(a_horizon_event(data="x" * (1_048_576 - 2))).status == 201
    body = problem(owner.publish(a_horizon_event(data="x" * (1_048_576 - 1))), 413)
    assert body["title"] == "The payload is too large to be published"
    # White space around and between values does not count.
    padded = json.dumps(a_horizon_event(data=["x"] * 100_000), indent=4).encode()
    assert len(padded) > 1_048_576 and owner.publish(padded).status == 201


def test_hor_t08_the_log_is_down_or_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with an_api(tmp_path, horizon={"publish_timeout": "200ms"}) as api:
        door = Door(api)
        door.applied(exposing(), a_specification())

        async def down(self: Any, drafts: Any) -> Any:
            raise LogUnavailable("the disk is full", retry_after=7)

        async def hangs(self: Any, drafts: Any) -> Any:
            await asyncio.sleep(30)

        monkeypatch.setattr(SqliteLogWriter, "append", down)
        answer = door.publish(a_horizon_event())
        assert problem(answer, 503)["title"] == "Failed to publish event" and answer.headers["retry-after"] == "7"
        monkeypatch.setattr(SqliteLogWriter, "append", hangs)
        began = time.monotonic()
        assert problem(door.publish(a_horizon_event()), 504)["title"] == "Failed to publish event"
        assert time.monotonic() - began < 20
        monkeypatch.undo()
        assert door.publish(a_horizon_event()).status == 201


def test_hor_t09_token_realm_body_and_doubles(api: ApiProcess, owner: Door) -> None:
    answer = Door(api).publish(a_horizon_event())
    assert problem(answer, 401) and "www-authenticate" in answer.headers
    assert problem(Door(api, "wrong").publish(a_horizon_event()), 401)
    assert problem(owner.publish(b"<a/>", content_type="application/xml"), 415)
    assert problem(owner.publish(b"{broken"), 400)
    assert problem(owner.publish(b"[]"), 400)
    assert problem(owner.publish(a_horizon_event(), accept="text/html"), 406)
    refused = owner.call("PUT", "/horizon/v1/playground/events", a_horizon_event())
    assert problem(refused, 405) and refused.headers["allow"] == "POST, HEAD"
    event = a_horizon_event()
    assert [owner.publish(event).status for _ in range(2)] == [201, 201]
    assert len([one for one in stored(owner) if one["id"] == event["id"]]) == 2


def test_hor_t09_the_wrong_realm(tmp_path: Path) -> None:
    with an_api(tmp_path, access=tokens(OWNER, realm="prod")) as api:
        body = problem(Door(api, OWNER).publish({"broken": True}), 401)
        assert body["detail"] == "Realm prod does not match environment playground."
        # The token and the body are looked at before, the fields after.
        assert Door(api, OWNER).publish(b"{").status == 400
        assert Door(api, OWNER, "prod").publish({}).status == 400


def test_the_default_environment_has_a_name_of_its_own(tmp_path: Path) -> None:
    with an_api(tmp_path) as api:
        Door(api, environment="integration").applied(exposing(), a_specification())
        for environment in ("integration", "default"):
            assert Door(api, environment=environment).publish(a_horizon_event()).status == 201
        assert Door(api, environment="other").publish(a_horizon_event()).status == 404


def test_hor_02_the_default_environment_in_realms_and_in_what_is_stored(tmp_path: Path) -> None:
    with an_api(tmp_path, access=tokens(OWNER, realm="integration")) as api:
        Door(api, OWNER, "integration").applied(exposing(), a_specification())
        for environment in ("integration", "default"):
            assert Door(api, OWNER, environment).publish(a_horizon_event()).status == 201
        assert api.call("POST", "/horizon/events/v1", a_horizon_event(), {"authorization": f"Bearer {OWNER}"}).status == 201
        assert Door(api, OWNER, "other").publish(a_horizon_event()).status == 401
        heads = [entry.head for entry in everything(api)]
        assert [note_in(head, "environment") for head in heads] == ["integration", "", "integration"]
        assert not any("$" in name for head in heads for name in event_from(head, None).attributes)


def test_headers_are_kept_but_for_those_that_are_not(api: ApiProcess, owner: Door) -> None:
    event = a_horizon_event()
    own = {
        "forwarded": "for=me",
        "x_api_key": "k",
        "range": "bytes=0-1",
        "if_match": "x",
        "if_none_match": "y",
        "If_Range": "z",
    }
    owner.publish(event, X_Foo="1", cookie="secret", Accept="application/json", X_Forwarded_For="me", x_b3_traceid="abc", **own)
    (head,) = [entry.head for entry in everything(api) if event["id"].encode() in entry.head]
    kept = json.loads(head)["$headers"]
    assert kept["x-foo"] == "1" and kept["x-b3-traceid"] == "abc"
    assert not {name.replace("_", "-").lower() for name in own} & kept.keys()
    assert not {"cookie", "accept", "authorization", "host", "content-length", "content-type", "x-forwarded-for"} & kept.keys()
    assert note_in(head, "by") == OWNER


def test_a_trace_is_continued(owner: Door) -> None:
    assert owner.publish(a_horizon_event(), x_b3_traceid="463ac35c9f6413ad").headers["x-b3-traceid"] == "463ac35c9f6413ad"
    assert "x-b3-traceid" in owner.publish({}).headers
    stream = f"/horizon/v1/playground/sse/{'0' * 40}"
    for path in ("/horizon/api/v1/circuit-breakers", "/horizon/nothing", stream):
        assert (
            owner.call("GET", path, headers={"X-B3-TraceId": "463ac35c9f6413ad"}).headers["x-b3-traceid"] == "463ac35c9f6413ad"
        )
        assert len(owner.call("GET", path).headers["x-b3-traceid"]) == 16
