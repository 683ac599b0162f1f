"""The HTTP client against small scripted servers."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tidings.client.http import HubClient, segment
from tidings.errors import HubProblem, HubUnreachable, Misconfigured


def an_answer(status: str = "200 OK", body: bytes = b"{}", headers: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\n{headers}\r\n".encode() + body


@contextmanager
def answering(*connections: list[bytes]) -> Iterator[tuple[str, list[bytes]]]:
    """A server: each inner list is one connection with its answers, after which it is closed. Gives its address and what came."""
    came: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            for answers in connections:
                connection, _ = server.accept()
                with connection:
                    for answer in answers:
                        came.append(_request(connection))
                        connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", came


def _request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    length = next((int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")), 0)
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def test_documents_go_and_come_as_json() -> None:
    with answering([an_answer(body=b'{"name": "orders"}')]) as (url, came):
        assert HubClient(url, token="t0k").put("/api/topics/orders", {"retention": "7d"}) == {"name": "orders"}
    head, _, body = came[0].partition(b"\r\n\r\n")
    assert head.startswith(b"PUT /api/topics/orders HTTP/1.1")
    assert b"authorization: Bearer t0k" in head
    assert json.loads(body) == {"retention": "7d"}


def test_an_empty_answer_is_nothing() -> None:
    with answering([an_answer("204 No Content", b"")]) as (url, _):
        assert HubClient(url).delete("/api/topics/orders") is None


def test_one_connection_is_kept() -> None:
    with answering([an_answer(), an_answer()]) as (url, came):
        client = HubClient(url)
        client.get("/a", {"limit": 5, "wait": None, "force": True})
        client.get("/b")
    assert [request.split(b" ")[1] for request in came] == [b"/a?limit=5&force=true", b"/b"]


def test_a_kept_connection_that_was_closed_is_made_again() -> None:
    with answering([an_answer()], [an_answer(body=b"[1]")]) as (url, _):
        client = HubClient(url)
        client.get("/a")
        assert client.get("/b") == [1]


def test_events_are_never_sent_twice() -> None:
    with answering([an_answer()], [an_answer()]) as (url, came):
        client = HubClient(url)
        client.get("/a")
        with pytest.raises(HubUnreachable):
            client.post("/events", {})
    assert len(came) == 1


def test_a_problem_reads_as_its_detail() -> None:
    body = json.dumps({"title": "Not there", "detail": "there is no topic x", "code": "not-found", "status": 404}).encode()
    with answering([an_answer("404 Not Found", body)]) as (url, _), pytest.raises(HubProblem) as caught:
        HubClient(url).get("/api/topics/x")
    assert str(caught.value) == "there is no topic x"
    assert caught.value.problem["code"] == "not-found"


@pytest.mark.parametrize("body", [b"<html>", b"[1]", b"", b"\xff"])
def test_a_refusal_of_something_else_reads_as_its_status(body: bytes) -> None:
    with answering([an_answer("502 Bad Gateway", body)]) as (url, _), pytest.raises(HubProblem, match="Bad Gateway"):
        HubClient(url).get("/")


def test_something_that_is_no_hub_is_a_sentence() -> None:
    with answering([an_answer(body=b"<html>")]) as (url, _), pytest.raises(HubProblem, match="no hub"):
        HubClient(url).get("/")


@pytest.mark.parametrize("answer", [b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nshort"])
def test_garbage_and_half_answers_are_a_hub_that_is_not_there(answer: bytes) -> None:
    with answering([answer]) as (url, _), pytest.raises(HubUnreachable):
        HubClient(url).get("/")


def test_nobody_there_says_how_to_start_a_hub() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(HubUnreachable, match="tidings serve"):
        HubClient(f"http://127.0.0.1:{port}").get("/")


@pytest.mark.parametrize("url", ["ftp://x", "http://", "://"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(Misconfigured):
        HubClient(url)


def test_an_address_may_leave_out_the_scheme_and_have_a_path() -> None:
    assert HubClient("localhost:9/hub/").url == "http://localhost:9/hub"


def test_names_keep_their_namespace_in_a_path() -> None:
    assert segment("horizon/prod:a b?") == "horizon/prod:a%20b%3F"
