from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api_process import CLOUDEVENT, ApiProcess, an_api
from tests.polling import until
from tests.server.wire import connect, wait_until_gone
from tidings.lanes.sink import Routed
from tidings.lanes.sqlite.writer import SqliteLanesWriter
from tidings.log.position import embedded

NDJSON = "application/x-ndjson"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    with an_api(tmp_path_factory.mktemp("reading")) as api:
        api.call("PUT", "/api/topics/orders", {})
        api.call("PUT", "/api/topics/others", {})
        for first in range(0, 300, 100):
            api.publish("orders", "\n".join(str(n) for n in range(first, first + 100)).encode(), NDJSON)
            api.publish("others", {"not": "this"})
        yield api


def test_a_topic_is_read_in_pages_without_a_gap(api: ApiProcess) -> None:
    seen: list[int] = []
    after = "_first"
    while len(seen) < 300:
        *events, end = api.lines("orders", after=after, limit=70)
        seen += [line["event"]["data"] for line in events]
        assert len(events) <= 70 and end.keys() == {"cursor"}
        after = end["cursor"]
    assert seen == list(range(300))
    assert [line.keys() for line in api.lines("orders", after=after)] == [{"cursor"}]


def test_a_long_answer_comes_whole(api: ApiProcess) -> None:
    assert [line["event"]["data"] for line in api.lines("orders", limit=1000)[:-1]] == list(range(300))


def test_going_on_after_a_single_events_cursor_gives_the_next_one(api: ApiProcess) -> None:
    lines = api.lines("orders")
    assert api.lines("orders", after=lines[41]["cursor"], limit=1)[0] == lines[42]


def test_last_begins_with_what_comes_next(api: ApiProcess) -> None:
    (end,) = api.lines("others", after="_last")
    api.publish("others", {"new": True})
    assert [line["event"]["data"] for line in api.lines("others", after=end["cursor"])[:-1]] == [{"new": True}]


def test_a_reader_that_waits_is_woken_by_the_next_event(api: ApiProcess) -> None:
    api.call("PUT", "/api/topics/quiet", {})
    found: list[object] = []
    reader = threading.Thread(target=lambda: found.extend(api.lines("quiet", after="_last", wait=30)))
    reader.start()

    def woken() -> bool:
        # Published again and again: the reader may begin to wait only after the first one.
        api.publish("quiet", CLOUDEVENT, "application/cloudevents+json")
        reader.join(0.05)
        return not reader.is_alive()

    until(woken, within=20)
    assert found[0]["event"] == CLOUDEVENT  # type: ignore[index]


def test_waiting_ends_with_only_a_cursor_when_nothing_comes(api: ApiProcess) -> None:
    api.call("PUT", "/api/topics/silent", {})
    assert [line.keys() for line in api.lines("silent", after="_last", wait=0.2)] == [{"cursor"}]


def test_a_reader_that_stops_reading_is_let_go(tmp_path: Path) -> None:
    with an_api(tmp_path, server={"answer_timeout": "400ms"}) as api:
        api.call("PUT", "/api/topics/large", {})
        for _ in range(10):
            api.publish("large", b"\n".join([b'"%b"' % (b"x" * 60_000)] * 50), NDJSON)
        with connect(api.port) as connection:
            connection.sendall(b"GET /api/topics/large/events HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert connection.recv(100).startswith(b"HTTP/1.1 200")
            wait_until_gone(connection)
        assert len(api.events("large")) == 500


@pytest.mark.parametrize("cursor", ["x", "0", "0-", "-1", "0-1.", "0-99999999999999999999", "1-2-3", "٣-1"])
def test_what_is_no_cursor_is_refused(api: ApiProcess, cursor: str) -> None:
    answer = api.call("GET", "/api/topics/orders/events", after=cursor)
    assert (answer.status, answer.json["code"]) == (400, "malformed")


@pytest.mark.parametrize("query", [{"limit": 0}, {"limit": "many"}, {"wait": -1}, {"wait": 3600}])
def test_bad_limits_are_refused_with_their_place(api: ApiProcess, query: dict[str, object]) -> None:
    answer = api.call("GET", "/api/topics/orders/events", **query)
    assert (answer.status, answer.json["errors"][0]["attribute"]) == (400, f"query.{next(iter(query))}")


def test_an_unknown_topic_is_not_found(api: ApiProcess) -> None:
    assert api.call("GET", "/api/topics/nowhere/events").status == 404


def test_a_cursor_below_what_was_removed_has_expired(tmp_path: Path) -> None:
    with an_api(tmp_path, log={"retention_sweep": "50ms"}) as api:
        api.call("PUT", "/api/topics/orders", {})
        first = api.publish("orders", {"n": 1}).json["last"]
        api.publish("orders", {"n": 2})
        _age(tmp_path)
        SqliteLanesWriter(tmp_path).write(Routed((), embedded(2)))
        until(lambda: len(api.lines("orders")) <= 1, within=20)
        last = api.publish("orders", {"n": 3}).json["last"]
        expired = api.call("GET", "/api/topics/orders/events", after=first)
        assert (expired.status, expired.json["code"]) == (410, "expired")
        assert [line["event"]["data"] for line in api.lines("orders", after="_first")[:-1]] == [{"n": 3}]
        assert [line.keys() for line in api.lines("orders", after=last)] == [{"cursor"}]


def _age(folder: Path) -> None:
    """Everything in the log becomes a month older. The hub's own clock stays as it is."""
    import sqlite3

    with sqlite3.connect(folder / "log.db", timeout=10) as connection:
        connection.execute("UPDATE entries SET at = at - 30 * 86400000000")
    connection.close()
