"""Publishing over HTTP: the order of checks, what is refused and how, what is stored (HER-62 to HER-72, HER-T29, HER-T30)."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.api_process import ApiProcess, an_api
from tests.doors.hermes.worlds import HermesDoor, refusal
from tests.hub import free_port
from tidings.access.authentication import token_digest
from tidings.errors import LogUnavailable
from tidings.log.sqlite.writer import SqliteLogWriter

SCHEMA = '{"type": "object", "properties": {"total": {"type": "number"}}, "required": ["total"]}'


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    with an_api(tmp_path_factory.mktemp("api")) as running:
        yield running


@pytest.fixture(scope="module")
def door(api: ApiProcess) -> HermesDoor:
    door = HermesDoor(api)
    for name, members in {
        "shop.orders": {},
        "shop.checked": {"schema": SCHEMA},
        "shop.free": {"schema": SCHEMA, "validationEnabled": False},
        "shop.small": {"maxMessageSize": 1024},
        "shop.closed": {"auth": {"enabled": True, "publishers": ["cart"], "unauthenticatedAccessEnabled": False}},
        "shop.half": {"auth": {"enabled": True, "publishers": ["cart"]}},
    }.items():
        door.topic(name, **members)
    return door


def is_id(text: str) -> bool:
    return uuid.UUID(text).version == 4


def test_a_message_is_stored_byte_for_byte_under_the_id_that_is_answered(door: HermesDoor) -> None:
    answer = door.publish("shop.orders", b'{ "a": 1.0 }', content_type="text/plain", partition_key="k1")
    assert (answer.status, answer.body) == (201, b"")
    event = door.stored()[-1]
    assert event["id"] == answer.headers["hermes-message-id"] and is_id(event["id"])
    assert (event["type"], event["source"], event["partitionkey"]) == ("shop.orders", "/hermes/topics/shop.orders", "k1")
    cursor = door.api.call("GET", f"/api/topics/hermes:shop.orders/find?id={event['id']}").json["cursor"]
    assert cursor is not None
    raw = door.api.call("GET", "/api/topics/hermes:shop.orders/events?limit=1000").body
    assert b'"data":{ "a": 1.0 }' in raw.replace(b'"data": {', b'"data":{')


def test_every_answer_has_an_id_of_its_own(door: HermesDoor) -> None:
    answers = [door.publish("shop.orders", b"{}"), door.publish("shop.orders", b"{"), door.publish("shop.nothing", b"{}")]
    ids = {answer.headers["hermes-message-id"] for answer in answers}
    assert len(ids) == 3 and all(map(is_id, ids))


def test_an_unknown_topic_is_told(door: HermesDoor) -> None:
    answer = door.publish("shop.nothing", b"{}")
    assert refusal(answer) == (404, "TOPIC_NOT_EXISTS")
    assert answer.json["message"] == "Topic not found: shop.nothing"
    assert refusal(door.publish("shop.no%20name", b"{}")) == (404, "TOPIC_NOT_EXISTS")


@pytest.mark.parametrize("body", [b"hello", b"", b'{"a":', b'{"a": 1} x'])
def test_a_json_topic_takes_json_only(door: HermesDoor, body: bytes) -> None:
    before = len(door.stored())
    answer = door.publish("shop.orders", body)
    assert refusal(answer) == (400, "VALIDATION_ERROR") and answer.json["message"].startswith("Invalid message: ")
    assert len(door.stored()) == before


def test_a_schema_is_checked_and_its_paths_are_told(door: HermesDoor) -> None:
    assert door.publish("shop.checked", {"total": 5}).status == 201
    answer = door.publish("shop.checked", {"total": "five"})
    assert refusal(answer) == (400, "VALIDATION_ERROR")
    assert answer.json["message"].startswith("Invalid message: ") and "/total" in answer.json["message"]


@pytest.mark.parametrize("body", [b"hello", b'{"total": "five"}', b"\xff\x00"])
def test_without_validation_a_body_is_not_looked_at(door: HermesDoor, body: bytes) -> None:
    assert door.publish("shop.free", body).status == 201


def test_the_size_of_a_topic_is_a_warning_and_two_mebibytes_are_the_end(door: HermesDoor) -> None:
    warned = door.publish("shop.small", {"a": "x" * 2000})
    assert warned.status == 201
    assert warned.headers["tidings-warning"] == "Content-Length is larger than max on this topic [length:2009, max:1024]."
    refused = door.publish("shop.orders", b'"' + b"x" * 2_097_151 + b'"')
    assert refusal(refused) == (400, "VALIDATION_ERROR")
    assert refused.json["message"] == "Content-Length is larger than max on this topic [length:2097153, max:2097152]."
    assert door.publish("shop.orders", b'"' + b"x" * 2_097_150 + b'"').status == 201


def test_the_size_of_a_topic_can_be_forced(tmp_path: Path) -> None:
    with an_api(tmp_path, hermes={"force_max_message_size": True}) as api:
        door = HermesDoor(api)
        door.topic(maxMessageSize=1024)
        assert refusal(door.publish("shop.orders", {"a": "x" * 2000})) == (400, "VALIDATION_ERROR")
        assert door.stored() == []


def test_a_topic_lists_its_publishers(door: HermesDoor) -> None:
    assert refusal(door.publish("shop.closed", b"{}")) == (403, "AUTH_ERROR")
    assert door.publish("shop.half", b"{}").status == 201


def test_tokens_say_who_publishes(tmp_path: Path) -> None:
    tokens = [
        {"name": name, "sha256": token_digest(name), "rights": rights}
        for name, rights in {"root": ["admin"], "cart": ["publish"], "other": ["publish"], "reader": ["read"]}.items()
    ]
    with an_api(tmp_path, access={"mode": "tokens", "tokens": tokens}) as api:
        HermesDoor(api, "root").topic(auth={"enabled": True, "publishers": ["cart"]})
        found = {name: HermesDoor(api, name).publish("shop.orders", b"{}").status for name in ("cart", "other", "reader")}
        assert found == {"cart": 201, "other": 403, "reader": 403}
        unknown = HermesDoor(api, "stranger").publish("shop.orders", b"{}")
        assert refusal(unknown) == (401, "AUTH_ERROR")
        assert HermesDoor(api, "other").publish("shop.nothing", b"{}").status == 404


def test_a_slow_log_is_503_and_never_202(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with an_api(tmp_path, hermes={"publish_timeout": "100ms"}) as api:
        door = HermesDoor(api)
        door.topic()

        async def hangs(self: SqliteLogWriter, drafts: Sequence[Any]) -> Sequence[Any]:
            await asyncio.sleep(60)
            return ()

        with monkeypatch.context() as patched:
            patched.setattr(SqliteLogWriter, "append", hangs)
            answer = door.publish("shop.orders", b"{}")
        assert refusal(answer) == (503, "SENDING_TO_KAFKA_TIMEOUT") and is_id(answer.headers["hermes-message-id"])

        async def full(self: SqliteLogWriter, drafts: Sequence[Any]) -> Sequence[Any]:
            raise LogUnavailable("the disk is full", retry_after=10)

        monkeypatch.setattr(SqliteLogWriter, "append", full)
        answer = door.publish("shop.orders", b"{}")
        assert (answer.status, answer.headers["retry-after"]) == (503, "10")
        assert answer.json["message"].startswith("Message not published. ")


def test_headers_travel_where_the_hub_lets_them(tmp_path: Path) -> None:
    with an_api(tmp_path, hermes={"propagate_headers": True, "propagated_headers": ["Trace-Id"]}) as api:
        door = HermesDoor(api)
        door.topic()
        door.sent("shop.orders", b"{}", trace_id="t1", other="x", authorization_x="")
        assert transport_of(api) == {"trace-id": "t1"}
    with an_api(tmp_path, hermes={"propagate_headers": True}) as api:
        HermesDoor(api).sent("shop.orders", b"{}", trace_id="t2", other="x", empty=" ", cookie="secret")
        assert {"trace-id": "t2", "other": "x"}.items() <= transport_of(api).items()
        assert not {"empty", "cookie", "host", "content-length"} & transport_of(api).keys()
    with an_api(tmp_path) as api:
        HermesDoor(api).sent("shop.orders", b"{}", trace_id="t3")
        assert transport_of(api) == {}


def transport_of(api: ApiProcess) -> dict[str, str]:
    """The headers kept with the newest message."""
    from tidings.events.stored import event_from
    from tidings.log.port import Limit
    from tidings.log.position import TopicNumber
    from tidings.log.sqlite.reader import SqliteLogReader

    reader = SqliteLogReader(api.data)
    try:
        entries = reader.read(TopicNumber(1), {}, Limit()).entries
        return dict(event_from(entries[-1].head, entries[-1].data).transport)
    finally:
        reader.close()


def test_a_port_of_its_own_has_the_paths_of_the_documents(tmp_path: Path) -> None:
    port = free_port()
    with an_api(tmp_path, hermes={"port": port}) as api:
        HermesDoor(api).topic()
        own = HermesDoor(ApiProcess(port, tmp_path), prefix="")
        assert own.publish("shop.orders", b"{}").status == 201
        for path in ("/", "/status/ping", "/status/health"):
            assert own.call("GET", path)[::2] == (200, b"UP")
        assert own.call("GET", "/status/ready")[::2] == (200, b"READY")
        assert own.get("/topics") == ["shop.orders"]
