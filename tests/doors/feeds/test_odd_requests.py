"""Requests as other people's clients write them: what is meant is answered, what cannot be meant is refused in a few words."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from tests.api_process import ApiProcess
from tests.doors.feeds.reading import Feed, code_of, taken_apart


@pytest.fixture(scope="module")
def feed(api: ApiProcess) -> Iterator[Feed]:
    feed = Feed(api, 4)
    feed.publish_keyed(20)
    yield feed


def exchange(api: ApiProcess, request: str) -> bytes:
    """What comes back until the hub closes."""
    with socket.create_connection(("127.0.0.1", api.port), timeout=10) as client:
        client.sendall(request.encode())
        answer = b""
        while piece := client.recv(65_536):
            answer += piece
    return answer


@pytest.mark.parametrize(
    "query",
    [
        "?n=1&cursor0=_first&cursor%s=x" % ("9" * 5000),
        "?n=1&cursor0=_first&wait=000000000000000000000000000000",
        "?n=1&cursor0=_first&pagesizehint=%s" % ("9" * 30),
        "?n=%2B1&cursor0=%5Ffirst",
        "?&&cursor0=_first&&n=1&",
        "?n=1&cursor0=_first&unknown=1&unknown=2&%zz=%&=",
        "?cursor0=_first&headers=&n=1",
        "?n=1&cursor0=_first&cursor=7&token=x&partition=9",
        "?n=1&cursor0=_first&cursor00=_last",
        "/?n=1&cursor0=_first",
    ],
)
def test_what_is_meant_is_answered(feed: Feed, query: str) -> None:
    assert len(taken_apart(feed.raw(query)).events) == 20


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("?n=4&cursor00=_last", "cursor-missing"),
        ("?n=4&cursor-1=_last", "cursor-missing"),
        ("?n=4&cursor=_last", "cursor-missing"),
        ("?cursor00=_last", "n-missing"),
        ("?cursor%s=_last" % ("9" * 5000), "n-missing"),
        ("?n=+1&cursor0=_last", "n-unsupported"),
        ("?n=%D9%A1&cursor0=_last", "n-unsupported"),
        ("?n=%s&cursor0=_last" % ("1" * 5000), "n-unsupported"),
        ("?n=1&cursor0=%D9%A3", "cursor-malformed"),
        ("?n=1&cursor0=+3", "cursor-malformed"),
        ("?n=1&cursor0=%s" % ("9" * 20_000), "cursor-malformed"),
        ("?n=1&cursor0=_last&pagesizehint=", "pagesize-invalid"),
        ("?n=1&cursor0=_last&pagesizehint=%s" % ("1" * 5000), "pagesize-invalid"),
    ],
)
def test_what_cannot_be_meant_is_refused(feed: Feed, query: str, code: str) -> None:
    assert code_of(feed.raw(query)) == (400, code)


def test_a_slash_at_the_end_changes_nothing(feed: Feed) -> None:
    token = feed.discover()["token"]
    assert feed.raw("/").json["token"] == token
    asked = f"?cursor=_first&partition=0&token={token}"
    assert feed.raw(f"//events{asked}").body == feed.raw(f"/events{asked}").body == feed.raw(f"/events/{asked}").body


def test_http_1_0_is_answered_without_chunks(feed: Feed, api: ApiProcess) -> None:
    head, _, body = exchange(api, f"GET {feed.path}?n=1&cursor0=_last HTTP/1.0\r\n\r\n").partition(b"\r\n\r\n")
    assert b"chunked" not in head and body.startswith(b'{"partition":0,"cursor":"') and body.endswith(b'"}\n')
    waited = exchange(api, f"GET {feed.path}?n=1&cursor0=_last&wait=1 HTTP/1.0\r\n\r\n").partition(b"\r\n\r\n")[2]
    assert waited == body


def test_nothing_is_packed_whatever_a_client_accepts(feed: Feed) -> None:
    for accept in ("application/json", "text/html", "*/*;q=0.1", "application/x-ndjson"):
        answer = feed.raw("?n=1&cursor0=_last", {"accept": accept, "accept-encoding": "gzip, br"})
        assert "content-encoding" not in answer.headers and taken_apart(answer).cursors


def test_the_payload_null_is_an_empty_object(api: ApiProcess) -> None:
    feed = Feed(api, 1, feed={"v1Data": "payload"})
    assert api.publish(feed.name, b" null\n").status == 202
    assert feed.v1(1, {0: "_first"}).events == [(0, {})]


def test_a_slash_behind_an_alias_changes_nothing_either(api: ApiProcess) -> None:
    feed = Feed(api, 1, feed={"aliases": ["/odd/feed/v1"]})
    token = feed.discover()["token"]
    assert api.call("GET", "/odd/feed/v1/").json["token"] == token
    assert taken_apart(api.call("GET", f"/odd/feed/v1//events?token={token}&partition=0&cursor=_first")).cursors
