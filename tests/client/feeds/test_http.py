"""The HTTP that a reader speaks: against bytes of every kind."""

from __future__ import annotations

import asyncio
import gzip
import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from tidings.client import FeedClient
from tidings.client.feeds import Http, HttpxHttp, PlainHttp
from tidings.client.feeds.answers import seconds_of
from tidings.client.feeds.connection import origin_of
from tidings.client.feeds.http import is_proxied
from tidings.errors import Misconfigured

Kind = Callable[[], Http]


@contextmanager
def speaking(*connections: list[bytes]) -> Iterator[tuple[str, list[bytes]]]:
    """A server: each inner list is one connection and its answers, after which it is closed."""
    came: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            for answers in connections:
                connection, _ = server.accept()
                with connection:
                    for answer in answers:
                        request = b""
                        while b"\r\n\r\n" not in request:
                            got = connection.recv(65536)
                            if not got:
                                return
                            request += got
                        came.append(request)
                        connection.sendall(answer.replace(b"HERE", b"http://127.0.0.1:%d" % server.getsockname()[1]))

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/a?b=c", came


@pytest.fixture(params=[PlainHttp, HttpxHttp])
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param


def got(kind: Kind, url: str, times: int = 1, silence: float = 5.0) -> list[tuple[int, bytes]]:
    async def go() -> list[tuple[int, bytes]]:
        http, found = kind(), []
        for _ in range(times):
            async with http.get(url, {"authorization": "Bearer t"}, silence) as answer:
                found.append((answer.status, b"".join([chunk async for chunk in answer.chunks])))
        await http.close()
        return found

    return asyncio.run(go())


@pytest.mark.parametrize(
    ("answer", "status", "body"),
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello", 200, b"hello"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nhel\r\n2\r\nlo\r\n0\r\nx: y\r\n\r\n", 200, b"hello"),
        (b"HTTP/1.0 200 OK\r\n\r\nhello", 200, b"hello"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b""),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404\r\ncontent-length: 0\r\n\r\n", 404, b""),
        (b"HTTP/1.1 200 OK\nContent-Length: 2\n\nhi", 200, b"hi"),
    ],
)
def test_answers_of_every_form_are_read(kind: Kind, answer: bytes, status: int, body: bytes) -> None:
    with speaking([answer]) as (url, came):
        assert got(kind, url) == [(status, body)]
    assert came[0].lower().startswith(b"get /a?b=c http/1.1\r\nhost: 127.0.0.1:")
    assert b"authorization: Bearer t\r\n" in came[0]


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhe",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"x: %b\r\n" % (b"y" * 1000) * 300 + b"\r\n",
        b"HTTP/1.1 302 Found\r\nlocation: ftp://x\r\n\r\n",
        b"HTTP/1.1 200 " + b"x" * 1_000_000,
    ],
)
def test_an_answer_that_breaks_off_is_an_error_and_never_a_short_answer(kind: Kind, answer: bytes) -> None:
    with speaking([answer]) as (url, _), pytest.raises(OSError):
        got(kind, url)


def test_a_connection_is_kept_and_made_again_when_the_server_closed_it(kind: Kind) -> None:
    fine = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"
    with speaking([fine, fine], [fine]) as (url, came):
        assert got(kind, url, times=3) == [(200, b"hi")] * 3
    assert len(came) == 3


def test_a_connection_that_the_server_closes_just_when_it_is_used_again_is_made_again(kind: Kind) -> None:
    fine = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"
    with speaking([fine, b""], [fine]) as (url, came):
        assert got(kind, url, times=2) == [(200, b"hi")] * 2
    assert len(came) == 3


def test_silence_is_not_waited_for_without_end(kind: Kind) -> None:
    with speaking([b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nh", b""]) as (url, _), pytest.raises(OSError):
        got(kind, url, silence=0.1)


def test_redirects_are_followed_but_not_for_ever_and_the_token_stays_at_home(kind: Kind) -> None:
    fine = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"
    with speaking([b"HTTP/1.1 307 Go\r\nlocation: /b\r\ncontent-length: 0\r\n\r\n"], [fine]) as (url, came):
        assert got(kind, url) == [(200, b"hi")]
    assert came[1].startswith(b"GET /b HTTP/1.1") and b"Bearer" in came[1]
    with speaking([fine]) as (other, came):
        elsewhere = b"HTTP/1.1 302 Go\r\nlocation: " + other.encode() + b"\r\n\r\n"
        with speaking([elsewhere]) as (url, _):
            assert got(kind, url) == [(200, b"hi")]
    assert b"Bearer" not in came[0]
    with speaking(*[[b"HTTP/1.1 302 Go\r\nlocation: HERE/a\r\n\r\n"]] * 6) as (url, _), pytest.raises(OSError, match="end"):
        got(kind, url)


def test_a_compressed_answer_is_read() -> None:
    packed = gzip.compress(b"hello")
    answer = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n%b" % (len(packed), packed)
    with speaking([answer]) as (url, came):
        assert got(HttpxHttp, url) == [(200, b"hello")]
    assert b"gzip" in came[0]
    with speaking([b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"]) as (url, came):
        got(PlainHttp, url)
    assert b"accept-encoding: identity" in came[0]


def without_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)


def test_a_feed_is_read_through_the_proxy_that_the_environment_names(monkeypatch: pytest.MonkeyPatch) -> None:
    body = b'{"token":"t","partitions":[{"id":"0"}]}'
    with speaking([b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)]) as (proxy, came):
        without_proxies(monkeypatch)
        monkeypatch.setenv("HTTP_PROXY", proxy.partition("/a")[0])
        found = asyncio.run(FeedClient("http://feeds.example/orders").discover())
    assert found.token == "t"
    assert came[0].startswith(b"GET http://feeds.example/orders HTTP/1.1")


@pytest.mark.parametrize(
    ("environment", "url", "proxied"),
    [
        ({}, "http://feeds.example/x", False),
        ({"HTTPS_PROXY": "http://p:1"}, "https://feeds.example/x", True),
        ({"https_proxy": "http://p:1"}, "http://feeds.example/x", False),
        ({"ALL_PROXY": "http://p:1"}, "http://feeds.example/x", True),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": "other,.example"}, "http://feeds.example/x", False),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": "*"}, "http://feeds.example/x", False),
        ({"ALL_PROXY": "http://p:1"}, "http://127.0.0.1:8484/x", False),
        ({"ALL_PROXY": "http://p:1"}, "http://localhost:8484/x", False),
        ({"ALL_PROXY": "http://p:1"}, "http://[::1]:8484/x", False),
    ],
)
def test_a_proxy_is_for_the_addresses_that_the_environment_means(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], url: str, proxied: bool
) -> None:
    without_proxies(monkeypatch)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert is_proxied(url) == proxied


def test_a_certificate_that_nobody_trusts_is_told_and_not_tried_again(kind: Kind, tmp_path: Path) -> None:
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(*a_certificate(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with suppress(OSError), serving.wrap_socket(connection, server_side=True):
                pass

        threading.Thread(target=serve, daemon=True).start()
        client = FeedClient(f"https://127.0.0.1:{server.getsockname()[1]}/feed", http=kind())
        with pytest.raises(Misconfigured, match="not trusted"):
            asyncio.run(asyncio.wait_for(client.run(lambda tx, batch: None), 30))


def a_certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate signed by itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
    made = made.not_valid_before(datetime(2020, 1, 1)).not_valid_after(datetime(2120, 1, 1))
    (folder / "cert").write_bytes(made.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM))
    (folder / "key").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return folder / "cert", folder / "key"


def test_origins_are_told_apart() -> None:
    assert origin_of("https://Example.org/x").host_header == "example.org"
    assert origin_of("http://[::1]:8080/x").host_header == "[::1]:8080"
    assert origin_of("https://h:80/").host_header == "h:80"
    for bad in ("http://h:99999/", "file:///x", "//h"):
        with pytest.raises(OSError):
            origin_of(bad)


def test_retry_after_is_a_number_or_a_date() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert [seconds_of(text, now) for text in ("7", " 7 ", None, "", "soon", "-3")] == [7, 7, None, None, None, None]
    assert seconds_of("Thu, 01 Jan 2026 00:00:30 GMT", now) == 30
    assert seconds_of("Wed, 31 Dec 2025 00:00:30 GMT", now) == 0
