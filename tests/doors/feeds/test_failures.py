"""When things go wrong: retention, storage, rights, and two changes at once."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from pathlib import Path

import pytest

from tests.api_process import ApiProcess, an_api
from tests.builders import a_name
from tests.doors.feeds.reading import Feed, code_of, taken_apart
from tidings import config
from tidings.access.authentication import token_digest
from tidings.clock import Instant
from tidings.errors import LogUnavailable
from tidings.log.port import Retention
from tidings.log.position import embedded
from tidings.log.sqlite.topic_slices import SqliteSlices
from tidings.log.sqlite.writer import SqliteLogWriter
from tidings.registry.store import open_reader


def remove_until(data: Path, offset: int) -> None:
    """Retention of the topic `orders`, with entries up to this one counted as old and routed."""

    with open_reader(data) as registry:
        number = registry.snapshot().topics[a_name("orders")].number

    async def trim() -> None:
        log = SqliteLogWriter(data, config.load(environ={}).log)
        try:
            assert await log.trim([Retention(number, Instant(1 << 62))], embedded(offset))
        finally:
            await log.close()

    asyncio.run(trim())


def test_ft_10_a_cursor_before_what_is_left_has_expired(tmp_path: Path) -> None:
    with an_api(tmp_path) as api:
        feed = Feed(api, 2, name="orders")
        feed.publish_keyed(500)
        feed.publish({"subject": "late"})
    remove_until(tmp_path, 500)
    with an_api(tmp_path) as api:
        token = api.call("GET", "/feeds/orders").json["token"]
        for path in (
            "/feeds/orders?n=2&cursor0=10",
            f"/feeds/orders/events?token={token}&partition=1&cursor=10",
            "/feeds/orders?n=2&cursorset=a&cursor0=499",
        ):
            answer = api.call("GET", path)
            assert code_of(answer) == (410, "cursor-expired") and answer.json["first"] == "500"
        left = taken_apart(api.call("GET", "/feeds/orders?n=2&cursor0=_first&cursor1=_first"))
        again = taken_apart(api.call("GET", "/feeds/orders?n=2&cursor0=500&cursor1=500"))
        assert len(left.events) == len(again.events) == 1
        assert code_of(api.call("GET", "/feeds/orders?n=2&cursorset=a&resume=0")) == (400, "resume-unknown")


def test_a_stored_cursor_can_expire_too(tmp_path: Path) -> None:
    with an_api(tmp_path) as api:
        feed = Feed(api, 1, name="orders")
        feed.publish_keyed(20)
        feed.v1(1, {0: "5"}, cursorset="a")
        feed.v2(0, "5", cursorset="a")
    remove_until(tmp_path, 20)
    with an_api(tmp_path) as api:
        token = api.call("GET", "/feeds/orders").json["token"]
        for path in ("?n=1&cursorset=a&resume=0", f"/events?token={token}&partition=0&cursorset=a&resume=0"):
            answer = api.call("GET", f"/feeds/orders{path}")
            assert code_of(answer) == (410, "cursor-expired") and answer.json["first"] == "20"


def test_ft_29_a_failure_in_mid_stream_cuts_the_connection(api: ApiProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    feed = Feed(api, 1)
    ids = feed.publish_keyed(1000)
    calls, real = 0, SqliteSlices.slice

    def failing(self: SqliteSlices, *given):  # type: ignore[no-untyped-def]
        nonlocal calls
        calls += 1
        if calls == 4:
            raise LogUnavailable("the disk cannot be read or written")
        return real(self, *given)

    monkeypatch.setattr(SqliteSlices, "slice", failing)
    connection = http.client.HTTPConnection("127.0.0.1", api.port, timeout=120)
    connection.request("GET", f"{feed.path}?n=1&cursor0=_first&pagesizehint=1000")
    response = connection.getresponse()
    assert response.status == 200
    with pytest.raises(http.client.IncompleteRead) as cut:
        response.read()
    lines = [json.loads(line) for line in cut.value.partial.split(b"\n") if line]
    assert len(lines) == 303 and "cursor" in lines[-1]
    before = [line["data"]["id"] for line in lines if "data" in line]
    rest = [event["id"] for event in feed.all_v1(1, 0, lines[-1]["cursor"])]
    assert before + rest == ids


def test_a_failure_before_the_first_byte_has_a_status(api: ApiProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    feed = Feed(api, 1)
    feed.publish_keyed(5)

    def failing(self: SqliteSlices, *given):  # type: ignore[no-untyped-def]
        raise LogUnavailable("the disk cannot be read or written")

    monkeypatch.setattr(SqliteSlices, "slice", failing)
    answer = feed.get(n=1, cursor0="_first")
    assert code_of(answer) == (503, "log-unavailable") and answer.headers["retry-after"]


def test_ft_32_only_who_may_read_does(tmp_path: Path) -> None:
    tokens = [
        {"name": "admin", "sha256": token_digest("admin"), "rights": ["admin"]},
        {"name": "reader", "sha256": token_digest("reader"), "rights": ["read"], "topics": ["orders"]},
        {"name": "writer", "sha256": token_digest("writer"), "rights": ["publish"]},
    ]
    with an_api(tmp_path, access={"mode": "tokens", "tokens": tokens}) as api:
        as_admin, as_reader, as_writer = ({"authorization": f"Bearer {name}"} for name in ("admin", "reader", "writer"))
        for topic in ("orders", "secrets"):
            assert api.call("PUT", f"/api/topics/{topic}", {}, as_admin).status == 201
        for path in ("/feeds/orders", "/feeds/nothing", "/feeds", "/feeds/orders/events", "/feeds/~nobody"):
            for method in ("GET", "POST"):
                answer = api.call(method, path)
                assert answer.status == 401 and answer.headers["www-authenticate"].startswith("Bearer")
        assert api.call("GET", "/feeds/orders", headers=as_reader).status == 200
        assert api.call("GET", "/feeds/orders?n=x", headers=as_writer).status == 403
        assert {api.call("GET", f"/feeds/{name}", headers=as_reader).status for name in ("secrets", "nothing")} == {403}
        assert code_of(api.call("GET", "/feeds/nothing", headers=as_admin)) == (404, "not-found")
        assert code_of(api.call("GET", "/feeds/~nobody", headers=as_admin)) == (404, "not-found")
        assert [one["topic"] for one in api.call("GET", "/feeds", headers=as_reader).json["feeds"]] == ["orders"]
        grow = {"method": "close", "count": 2}
        assert api.call("POST", "/api/feeds/orders/partitions", grow, as_reader).status == 403
        assert api.call("GET", "/api/feeds/orders/cursorsets", headers=as_reader).status == 403


def test_ft_21_a_second_change_while_one_runs_is_refused(api: ApiProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    feed = Feed(api, 1)
    held, real = threading.Event(), SqliteLogWriter.fence
    entered = threading.Event()

    async def slow(self: SqliteLogWriter, settle):  # type: ignore[no-untyped-def]
        entered.set()
        await asyncio.to_thread(held.wait, 20)
        return await real(self, settle)

    monkeypatch.setattr(SqliteLogWriter, "fence", slow)
    first: list[int] = []
    running = threading.Thread(target=lambda: first.append(feed.repartition("close", 2).status))
    running.start()
    assert entered.wait(20)
    try:
        assert code_of(feed.repartition("close", 2)) == (409, "repartition-running")
    finally:
        held.set()
        running.join(20)
    assert first == [200] and len(feed.discover()["partitions"]) == 3
