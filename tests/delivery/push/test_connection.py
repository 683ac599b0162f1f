"""The wire itself: every odd way an endpoint can speak HTTP/1, or not, against a real socket that sends raw bytes."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvloop

from tidings.delivery.push.egress import connection, connection_pool
from tidings.delivery.push.egress.connection import HEAD_LIMIT, ConnectionFailed, Endpoint, EndpointAnswer
from tidings.delivery.push.egress.connection_pool import ConnectionPool, Request
from tidings.delivery.push.request.request_bytes import Opening

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
RESET = b"reset"
"""Stands for a connection that is reset instead of closed."""


class Raw:
    """Answers the requests of each connection with these bytes in turn, then closes it. A `float` is a pause in seconds."""

    def __init__(self, *talks: Sequence[bytes | float | Sequence[bytes | float]]) -> None:
        self._talks = list(talks)
        self.connections = 0
        self.requests: list[bytes] = []
        self.place = Endpoint("127.0.0.1", 0)

    async def __aenter__(self) -> Raw:
        self._server = await asyncio.start_server(self._talk, "127.0.0.1", 0)
        self.place = Endpoint("127.0.0.1", self._server.sockets[0].getsockname()[1])
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = self._talks[min(self.connections, len(self._talks) - 1)]
        self.connections += 1
        try:
            for answer in talk:
                await self._request(reader)
                for part in answer if isinstance(answer, list | tuple) else [answer]:
                    await self._say(part, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _request(self, reader: asyncio.StreamReader) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        self.requests.append(head + await reader.readexactly(int(length or 0)))

    async def _say(self, part: bytes | float, writer: asyncio.StreamWriter) -> None:
        if isinstance(part, float):
            await asyncio.sleep(part)
        elif part == RESET:
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.transport.abort()
        else:
            writer.write(part)
            await writer.drain()


@asynccontextmanager
async def some_connections() -> AsyncIterator[ConnectionPool]:
    made = ConnectionPool(ssl.create_default_context(), 2.0)
    try:
        yield made
    finally:
        await made.close()


def a_request(method: str = "POST", timeout: float = 5.0, keep: int = 0) -> Request:
    return Request(method, Opening(method, "/in", "hooks.example").request({"x-test": "1"}, b"{}"), timeout, keep)


def asked(raw: Raw, *requests: Request) -> list[EndpointAnswer | str]:
    """What came of these requests, one after the other; a cause where no answer came."""

    async def scenario() -> list[EndpointAnswer | str]:
        found: list[EndpointAnswer | str] = []
        async with raw, some_connections() as made:
            for request in requests or [a_request()]:
                try:
                    found.append(await made.ask(raw.place, request))
                except ConnectionFailed as failed:
                    found.append(failed.cause)
        return found

    return run(scenario)


def run(scenario: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    return uvloop.run(asyncio.wait_for(scenario(), 120))


def status_of(answer: EndpointAnswer | str) -> int | str:
    return answer if isinstance(answer, str) else answer.status


ANSWERS: dict[str, tuple[Sequence[bytes | float], int | str]] = {
    "plain": ([OK], 200),
    "byte by byte": ([OK[n : n + 1] for n in range(len(OK))], 200),
    "http/1.0, until the end": ([b"HTTP/1.0 200 OK\r\n\r\nsome text"], 200),
    "http/1.0 that keeps": ([b"HTTP/1.0 202 Fine\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\nok"], 202),
    "no reason phrase": ([b"HTTP/1.1 204\r\n\r\n"], 204),
    "chunked": ([b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", b"5\r\nhello\r\n", 0.01, b"0\r\n\r\n"], 200),
    "chunked with trailers": ([b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx-sum: 1\r\n\r\n"], 200),
    "a chunk that is none": ([b"HTTP/1.1 500 No\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nhello\r\n"], 500),
    "shorter than it says": ([b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort"], 200),
    "longer than it says": ([b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nlonger"], 200),
    "a length that is no number": ([b"HTTP/1.1 200 OK\r\ncontent-length: two\r\n\r\n"], "bad-answer"),
    "two lengths": ([b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok"], "bad-answer"),
    "continue, then the answer": ([b"HTTP/1.1 100 Continue\r\n\r\n", 0.01, OK], 200),
    "hints, then the answer": ([b"HTTP/1.1 103 Hints\r\nlink: </a>\r\n\r\n" + OK], 200),
    "only interim answers": ([b"HTTP/1.1 100 Continue\r\n\r\n"], "connection-lost"),
    "another protocol": ([b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"], 101),
    "no HTTP at all": ([b"220 mail.example ESMTP\r\n"], "bad-answer"),
    "TLS where none is spoken": ([b"\x15\x03\x01\x00\x02\x02\x46"], "bad-answer"),
    "nothing": ([b""], "connection-lost"),
    "reset": ([RESET], "connection-lost"),
    "reset in the head": ([b"HTTP/1.1 200 OK\r\nx-a: 1\r\n", 0.05, RESET], "connection-lost"),
    "reset in the body": ([b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nab", 0.05, RESET], 200),
    "a head without end": ([b"HTTP/1.1 200 OK\r\n", *([b"x-more: " + b"y" * 1000 + b"\r\n"] * 100), 5.0], "bad-answer"),
    "interim answers without end": ([b"HTTP/1.1 100 Continue\r\n\r\n" * (HEAD_LIMIT // 20), 5.0], "bad-answer"),
}


@pytest.mark.parametrize("kind", ANSWERS)
def test_whatever_comes_back_is_an_answer_or_a_cause(kind: str) -> None:
    parts, expected = ANSWERS[kind]
    (answer,) = asked(Raw([parts]))
    assert status_of(answer) == expected


@pytest.mark.parametrize(
    "status", [200, 201, 202, 204, 299, 300, 301, 302, 304, 307, 308, 400, 401, 404, 410, 429, 500, 503, 599]
)
def test_every_status_is_taken_as_it_is(status: int) -> None:
    body = b"" if status in (204, 304) else b"content-length: 2\r\n\r\nok"
    first, second = asked(Raw([[b"HTTP/1.1 %d X\r\n%b" % (status, body or b"\r\n")]] * 2), a_request(), a_request())
    assert [status_of(first), status_of(second)] == [status, status]


def test_slow_bytes_of_a_head_are_a_timeout() -> None:
    began = time.monotonic()
    parts: list[bytes | float] = [part for n in range(len(OK)) for part in (OK[n : n + 1], 0.2)]
    assert asked(Raw([parts]), a_request(timeout=0.5)) == ["timeout"]
    assert time.monotonic() - began < len(OK) * 0.2


def test_a_connection_serves_until_something_else_than_an_answer_comes() -> None:
    """What follows the first answer must not be taken for the second one."""
    raw = Raw([OK + b"HTTP/1.1 500 Forged\r\ncontent-length: 0\r\n\r\n", OK], [OK])
    assert [status_of(answer) for answer in asked(raw, a_request(), a_request())] == [200, 200]
    assert raw.connections == 2


def test_bytes_that_nobody_asked_for_end_a_kept_connection() -> None:
    raw = Raw([[OK, 0.05, b"HTTP/1.1 500 Forged\r\ncontent-length: 0\r\n\r\n", 1.0]], [OK])

    async def scenario() -> list[int]:
        async with raw, some_connections() as made:
            first = await made.ask(raw.place, a_request())
            await asyncio.sleep(0.2)
            return [first.status, (await made.ask(raw.place, a_request())).status]

    assert run(scenario) == [200, 200]
    assert raw.connections == 2


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n", b"HTTP/1.0 200 OK\r\n\r\n"]
)
def test_an_endpoint_that_wants_no_kept_connection_gets_a_new_one(answer: bytes) -> None:
    raw = Raw([answer])
    assert [status_of(one) for one in asked(raw, a_request(), a_request())] == [200, 200]
    assert raw.connections == 2


def test_a_connection_is_not_used_again_while_its_last_request_is_not_read() -> None:
    async def scenario() -> None:
        async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            """Answers at once and never reads the body."""
            await reader.readuntil(b"\r\n\r\n")
            writer.write(OK)
            await asyncio.sleep(30)

        server = await asyncio.start_server(refuse, "127.0.0.1", 0, limit=1 << 16)
        place = Endpoint("127.0.0.1", server.sockets[0].getsockname()[1])
        parts = Opening("POST", "/in", "hub").request({}, bytes(32 << 20))
        async with some_connections() as asked:
            for _ in range(2):
                assert (await asked.ask(place, Request("POST", parts, 5.0))).status == 200
        server.close()

    asyncio.run(scenario())


def test_a_connection_closed_at_rest_is_not_used_again() -> None:
    raw = Raw([OK])

    async def scenario() -> list[int]:
        found = []
        async with raw, some_connections() as made:
            for _ in range(3):
                found.append((await made.ask(raw.place, a_request())).status)
                await asyncio.sleep(0.1)
        return found

    assert run(scenario) == [200, 200, 200]
    assert raw.connections == 3


@pytest.mark.parametrize("end", [RESET, b""])
def test_a_request_that_met_a_closing_connection_goes_out_once_more_at_once(end: bytes) -> None:
    """The endpoint closes a kept connection right after an answer, or just as the next request comes: no try is lost to that."""
    raw = Raw([OK, end], [OK])
    assert [status_of(answer) for answer in asked(raw, a_request(), a_request())] == [200, 200]
    assert (raw.connections, len(raw.requests)) == (2, 3)


def test_a_request_goes_out_once_more_only_once() -> None:
    raw = Raw([OK, RESET], [RESET])
    assert [status_of(answer) for answer in asked(raw, a_request(), a_request())] == [200, "connection-lost"]
    assert len(raw.requests) == 3


def test_a_connection_lost_after_the_first_byte_of_an_answer_is_a_cause_and_not_sent_twice() -> None:
    raw = Raw([OK, [b"HTTP/1.1 ", 0.05, RESET]], [OK])
    assert [status_of(answer) for answer in asked(raw, a_request(), a_request())] == [200, "connection-lost"]
    assert len(raw.requests) == 2


def test_a_new_connection_that_is_lost_is_a_cause_and_not_sent_twice() -> None:
    raw = Raw([RESET], [OK])
    assert [status_of(answer) for answer in asked(raw, a_request())] == ["connection-lost"]
    assert len(raw.requests) == 1


def test_rested_connections_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_pool, "IDLE_FOR", 0.0)
    monkeypatch.setattr(connection_pool, "REST_TICK", 0.01)
    raw = Raw([OK, OK])

    async def scenario() -> None:
        async with raw, some_connections() as made:
            for _ in range(2):
                await made.ask(raw.place, a_request())
                await asyncio.sleep(0.2)

    run(scenario)
    assert raw.connections == 2


def test_only_so_many_idle_connections_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_pool, "KEPT", 3)
    raw = Raw([[0.1, OK], [0.1, OK]])

    async def scenario() -> None:
        async with raw, some_connections() as made:
            for _ in range(2):
                await asyncio.gather(*(made.ask(raw.place, a_request()) for _ in range(10)))

    run(scenario)
    assert raw.connections == 17


def test_a_canceled_request_leaves_nothing_behind() -> None:
    raw = Raw([[5.0, OK]], [OK])

    async def scenario() -> int:
        async with raw, some_connections() as made:
            task = asyncio.create_task(made.ask(raw.place, a_request()))
            await asyncio.sleep(0.1)
            task.cancel()
            return (await made.ask(raw.place, a_request())).status

    assert run(scenario) == 200


def test_the_answer_to_a_head_request_has_no_body(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "BODY_PATIENCE", 60.0)
    raw = Raw([[b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n", 60.0]])
    assert [status_of(answer) for answer in asked(raw, a_request("HEAD"))] == [200]


def test_a_body_that_is_wanted_is_kept_whole_or_not_at_all() -> None:
    whole = Raw([[b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello", 1.5, b"world"]])
    cut = Raw([[b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello"]])
    until_end = Raw([[b"HTTP/1.1 200 OK\r\n\r\nhello"]])
    long = Raw([[b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n" + b"x" * 1_000_000]])
    wanted = a_request(keep=1000)
    assert [asked(raw, wanted)[0] for raw in (cut,)] == ["connection-lost"]
    kept = [asked(raw, wanted)[0] for raw in (whole, until_end, long)]
    assert [one.body for one in kept if isinstance(one, EndpointAnswer)] == [b"helloworld", b"hello", b"x" * 1000]


def test_a_request_is_written_as_it_is_meant() -> None:
    raw = Raw([OK])
    asked(raw)
    lines = [b"POST /in HTTP/1.1", b"host: hooks.example", b"user-agent: tidings", b"accept: */*", b"x-test: 1"]
    assert raw.requests == [b"\r\n".join([*lines, b"content-length: 2", b"", b"{}"])]


@pytest.mark.parametrize("value", ["a\r\nx-forged: 1", "a\nb", "a\rb", "a\0b", "ü"])
@pytest.mark.parametrize("in_name", [True, False])
def test_a_header_cannot_bring_another_along(value: str, in_name: bool) -> None:
    headers = {value: "1"} if in_name else {"x-a": value}
    with pytest.raises(ValueError):
        Opening("POST", "/in", "hooks.example").request(headers, b"{}")
