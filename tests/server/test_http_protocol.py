from __future__ import annotations

import asyncio
import dataclasses
import gc
import resource
import socket
import threading
import time
from typing import Any

import pytest

from tests.server.wire import LIMITS, Answer, a_server, connect, exchange, read_answer, wait_until_gone
from tidings.server.client_connections import client_of

QUICK = dataclasses.replace(LIMITS, head_time=0.4, body_time=0.4, keep_alive=0.4)
UNREAD = dataclasses.replace(LIMITS, answer_time=0.4)


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Answers with the size of the body and of the head."""
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size += len(message["body"])
        more = message["more_body"]
    body = b"%d" % size
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


def is_problem(answer: Answer, status: int, code: str) -> bool:
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json["status"] == status
    return (answer.status, answer.json["code"]) == (status, code)


def test_an_ordinary_request_passes_and_its_connection_stays_open() -> None:
    with a_server(echo) as port, connect(port) as connection:
        for _ in range(3):
            connection.sendall(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nabc")
            assert read_answer(connection).body == b"3"


async def piecemeal(scope: Any, receive: Any, send: Any) -> None:
    """Answers in pieces, with their length only where it is asked for."""
    headers = [(b"content-length", b"4")] if scope["path"] == "/told" else []
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"ab", "more_body": True})
    await send({"type": "http.response.body", "body": b"cd", "more_body": False})


@pytest.mark.parametrize("path", [b"/told", b"/untold"])
def test_http_1_0_gets_no_chunks(path: bytes) -> None:
    with a_server(piecemeal) as port, connect(port) as connection:
        connection.sendall(b"GET %b HTTP/1.0\r\nconnection: keep-alive\r\n\r\n" % path)
        answer = b""
        while piece := connection.recv(1000):
            answer += piece
    head, body = answer.split(b"\r\n\r\n")
    assert body == b"abcd" and b"transfer-encoding" not in head and b"connection: close" in head


def test_pipelined_requests_are_answered_in_order() -> None:
    requests = b"".join(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%s" % (n, b"x" * n) for n in range(1, 6))
    with a_server(echo) as port, connect(port) as connection:
        connection.sendall(requests)
        assert [read_answer(connection).body for _ in range(5)] == [b"1", b"2", b"3", b"4", b"5"]


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\nhost: x\r\nlong: " + b"a" * 100_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: x\r\n" + b"".join(b"h%d: v\r\n" % n for n in range(12_000)) + b"\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"a" * 100_000 + b": x\r\n\r\n",
    ],
    ids=["one long value", "many headers", "long path", "long name"],
)
def test_a_head_of_100_000_bytes_gets_431(head: bytes) -> None:
    with a_server(echo) as port:
        assert is_problem(exchange(port, head), 431, "head-too-large")


def test_a_head_just_below_the_limit_passes() -> None:
    with a_server(echo) as port:
        assert exchange(port, b"GET / HTTP/1.1\r\nhost: x\r\nlong: " + b"a" * 60_000 + b"\r\n\r\n").status == 200


def test_a_head_of_50_megabytes_gets_431_and_is_not_kept_in_memory() -> None:
    with a_server(echo) as port, connect(port) as connection:
        piece = b"a" * (1 << 20)
        gc.collect()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        connection.sendall(b"GET / HTTP/1.1\r\nhost: x\r\nlong: ")
        for _ in range(50):
            connection.sendall(piece)
        answer = read_answer(connection)
        assert is_problem(answer, 431, "head-too-large")
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000


@pytest.mark.parametrize("tail", [b"5;x=" + b"e" * 500_000, b"5\r\nabcde\r\n0\r\nlong: " + b"t" * 500_000])
def test_chunk_extensions_and_trailers_are_limited_too(tail: bytes) -> None:
    with a_server(echo) as port:
        answer = exchange(port, b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n" + tail)
        assert is_problem(answer, 431, "head-too-large")


def test_many_small_chunks_pass() -> None:
    with a_server(echo) as port:
        head = b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
        assert exchange(port, head + b"1\r\nx\r\n" * 50_000 + b"0\r\n\r\n").body == b"50000"


def test_a_head_that_dribbles_gets_408() -> None:
    with a_server(echo, QUICK) as port, connect(port) as connection:
        began = time.monotonic()
        connection.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n")
        while time.monotonic() - began < 5:
            connection.settimeout(0.05)
            try:
                answer = read_answer(connection)
                break
            except TimeoutError:
                connection.sendall(b"a: b\r\n")
        assert is_problem(answer, 408, "head-too-slow")


def test_a_connection_that_says_nothing_gets_408() -> None:
    with a_server(echo, QUICK) as port, connect(port) as connection:
        assert is_problem(read_answer(connection), 408, "head-too-slow")


def test_a_body_that_dribbles_gets_408_and_the_connection_ends() -> None:
    with a_server(echo, QUICK) as port, connect(port) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nabc")
        assert is_problem(read_answer(connection), 408, "body-too-slow")
        assert connection.recv(1) == b""


def test_an_idle_connection_is_closed_without_a_word() -> None:
    with a_server(echo, QUICK) as port, connect(port) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        assert read_answer(connection).status == 200
        assert connection.recv(1) == b""


class Talkative:
    """Answers without end, and remembers when it was told to stop."""

    def __init__(self) -> None:
        self.over = threading.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        talking = asyncio.ensure_future(self._talk(send))
        while (await receive())["type"] != "http.disconnect":
            pass
        talking.cancel()
        self.over.set()

    async def _talk(self, send: Any) -> None:
        while True:
            await send({"type": "http.response.body", "body": b"x" * 100_000, "more_body": True})
            await asyncio.sleep(0)


def test_a_client_that_stops_reading_an_endless_answer_is_let_go() -> None:
    app = Talkative()
    with a_server(app, UNREAD) as port, connect(port) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        assert connection.recv(1000)
        assert app.over.wait(20)


def test_a_client_that_goes_on_reading_is_not_let_go() -> None:
    app = Talkative()
    patient = dataclasses.replace(LIMITS, answer_time=8)
    with a_server(app, patient) as port, connect(port) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        for _ in range(200):
            assert connection.recv(100_000)
        assert not app.over.is_set()


def test_a_whole_answer_that_nobody_reads_is_not_kept_for_ever() -> None:
    async def large(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"30000000")]})
        await send({"type": "http.response.body", "body": b"x" * 30_000_000})

    with a_server(large, UNREAD) as port, connect(port) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        wait_until_gone(connection)


@pytest.mark.parametrize(
    "garbage",
    [b"\x16\x03\x01\x02\x00\x01\x00", b"hello\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET / HTTP/1.1\r\nbad header\r\n\r\n"],
)
def test_garbage_gets_400(garbage: bytes) -> None:
    with a_server(echo) as port:
        assert is_problem(exchange(port, garbage), 400, "malformed-http")


def test_garbage_after_a_good_request_is_refused_and_the_good_one_is_answered() -> None:
    with a_server(echo) as port, connect(port) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        assert read_answer(connection).status == 200
        connection.sendall(b"\x00\x00\x00")
        assert is_problem(read_answer(connection), 400, "malformed-http")


async def too_large(scope: Any, receive: Any, send: Any) -> None:
    """Refuses at once, with the body still on its way."""
    await send({"type": "http.response.start", "status": 413, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"no"})


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
def test_whoever_is_refused_in_the_middle_reads_why_though_the_connection_ends(version: bytes) -> None:
    size = 20 << 20
    with a_server(too_large) as port:
        head = b"POST / HTTP/%b\r\nhost: x\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % (version, size)
        answer = exchange(port, head + b"x" * size)
    assert (answer.status, answer.body) == (413, b"no")


def test_a_request_that_offers_http2_keeps_its_body() -> None:
    request = (
        b"POST / HTTP/1.1\r\nhost: x\r\nconnection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAEA\r\n"
        b"content-length: 5\r\n\r\nhello"
    )
    with a_server(echo) as port, connect(port) as connection:
        for _ in range(2):
            connection.sendall(request)
            assert read_answer(connection).body == b"5"


def test_more_connections_than_allowed_get_503() -> None:
    with a_server(echo, dataclasses.replace(LIMITS, connections=1)) as port, connect(port) as first:
        first.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        assert read_answer(first).status == 200
        with connect(port) as second:
            answer = read_answer(second)
            assert is_problem(answer, 503, "too-many-connections")
            assert answer.headers["retry-after"] == "1"


ONE_EACH = dataclasses.replace(LIMITS, client_connections=1)


def connect_from(address: str, port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=80, source_address=(address, 0))


def test_more_connections_of_one_client_than_allowed_get_429_and_others_are_served() -> None:
    with a_server(echo, ONE_EACH) as port, connect_from("127.0.0.1", port) as first:
        first.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        assert read_answer(first).status == 200
        with connect_from("127.0.0.1", port) as second:
            answer = read_answer(second)
        assert is_problem(answer, 429, "too-many-connections-of-client")
        assert (answer.headers["retry-after"], "max_connections_per_client" in answer.json["detail"]) == ("1", True)
        with connect_from("127.0.0.2", port) as other:
            other.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            assert read_answer(other).status == 200


def test_a_client_that_closes_its_connection_may_open_another() -> None:
    with a_server(echo, ONE_EACH) as port:
        give_up = time.monotonic() + 20
        for _ in range(3):
            # The server hears of the end a little later than the client.
            while (answer := exchange(port, b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")).status == 429:
                assert time.monotonic() < give_up
            assert answer.status == 200


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("10.0.0.1", "10.0.0.2", False),
        ("10.0.0.1", "::ffff:10.0.0.1", True),
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("fe80::1%eth0", "fe80::2%eth1", True),
        ("", "unknown", False),
    ],
)
def test_whose_an_address_is(one: str, other: str, same: bool) -> None:
    assert (client_of(one) == client_of(other)) is same


@pytest.mark.parametrize("host", [b"", b"host: a\r\nhost: b\r\n"])
def test_http_1_1_without_exactly_one_host_gets_400_and_1_0_needs_none(host: bytes) -> None:
    with a_server(echo) as port:
        assert is_problem(exchange(port, b"GET / HTTP/1.1\r\n" + host + b"\r\n"), 400, "host-missing")
        assert exchange(port, b"GET / HTTP/1.0\r\n\r\n").status == 200


def test_clients_that_leave_with_requests_under_way_leave_no_stack_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    begun, left = threading.Semaphore(0), threading.Event()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        begun.release()
        await asyncio.to_thread(left.wait, 20)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    request = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
    with a_server(slow) as port:
        with connect(port) as connection:
            connection.sendall(request * 3 + b"\x00 this is no HTTP")
            assert begun.acquire(timeout=20)
            assert is_problem(read_answer(connection), 400, "malformed-http")
            left.set()
            assert connection.recv(100) == b"", "nothing comes after it"
        with connect(port) as connection:
            connection.sendall(request)
            assert read_answer(connection).body == b"ok"
    assert [record.message for record in caplog.records if record.exc_info] == []
