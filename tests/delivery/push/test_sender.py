"""One attempt against real sockets: every way an endpoint can answer, or not."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Sequence

import pytest
import uvloop

from tests.receivers import Answer, Receiver
from tidings.clock import ManualClock, SystemClock
from tidings.delivery.push.egress.address_guard import LOOPBACK, AddressRules, Guard, Lookup
from tidings.delivery.push.egress.connection import BODY_LIMIT
from tidings.delivery.push.egress.endpoints import JUDGED_FOR, Endpoints
from tidings.delivery.push.egress.sender import Sender, SendTarget
from tidings.delivery.push.policy.decision import Outcome

LOCAL = AddressRules(tuple(LOOPBACK))


async def no_lookup(host: str, port: int) -> Sequence[str]:
    raise OSError(host)


def names(*answers: Sequence[str]) -> Lookup:
    """A name server that gives these answers in turn, the last one for ever."""
    left = list(answers)

    async def lookup(host: str, port: int) -> Sequence[str]:
        return left.pop(0) if len(left) > 1 else left[0]

    return lookup


def attempts(
    urls: Sequence[str], timeout: float = 5.0, lookup: Lookup = no_lookup, rules: AddressRules = LOCAL, **headers: str
) -> list[Outcome]:
    """The outcomes of attempts to these addresses, one after the other, by one sender."""

    async def scenario() -> list[Outcome]:
        sender = Sender(Endpoints(Guard(rules, lookup), SystemClock(), 2.0), SystemClock())
        try:
            return [await sender.send(SendTarget(url, timeout), {"x-test": "1", **headers}, b"{}") for url in urls]
        finally:
            await sender.close()

    return uvloop.run(scenario())


@pytest.mark.parametrize("status", [200, 204, 404, 500])
def test_the_status_is_the_outcome(status: int) -> None:
    with Receiver([Answer(status, body=b"" if status == 204 else b"ok")]) as receiver:
        (outcome,) = attempts([receiver.url])
    assert (outcome.status, outcome.cause) == (status, "")
    assert outcome.duration > 0
    assert (receiver.arrivals[0].method, receiver.arrivals[0].path, receiver.arrivals[0].body) == ("POST", "/in", b"{}")


@pytest.mark.parametrize("answer", [Answer(200), Answer(204), Answer(200, body=b"fine"), Answer(500, body=b"x" * 5000)])
def test_connections_are_kept_alive(answer: Answer) -> None:
    with Receiver([answer]) as receiver:
        attempts([receiver.url] * 5)
    assert (len(receiver.arrivals), receiver.connections) == (5, 1)


def test_a_refused_connection_is_a_cause() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        (outcome,) = attempts([f"http://127.0.0.1:{taken.getsockname()[1]}/in"])
    assert (outcome.status, outcome.cause) == (None, "connect-failed")


def test_no_answer_in_time_is_a_timeout() -> None:
    with Receiver([Answer(hang=True)]) as receiver:
        (outcome,) = attempts([receiver.url], timeout=0.2)
    assert (outcome.status, outcome.cause) == (None, "timeout")


def test_a_connection_closed_without_an_answer_is_a_cause() -> None:
    with Receiver([Answer(drop=True)]) as receiver:
        (outcome,) = attempts([receiver.url])
    assert (outcome.status, outcome.cause) == (None, "connection-lost")


def test_a_slow_body_does_not_hold_the_attempt() -> None:
    with Receiver([Answer(200, body=b"x" * 100, pace=0.5)]) as receiver:
        began = time.monotonic()
        (outcome,) = attempts([receiver.url], timeout=30.0)
    assert outcome.status == 200
    assert time.monotonic() - began < 20, "the whole body would take 50 seconds"


def test_an_endless_body_is_not_read() -> None:
    with Receiver([Answer(200, endless=True)]) as receiver:
        (outcome,) = attempts([receiver.url])
    assert outcome.status == 200
    assert receiver.sent_bytes < BODY_LIMIT + (16 << 20), "only what fits into the buffers of sockets was sent beyond the limit"


def test_a_redirect_is_an_answer_and_is_not_followed() -> None:
    with Receiver() as elsewhere, Receiver([Answer(302, {"location": elsewhere.url})]) as receiver:
        (outcome,) = attempts([receiver.url])
    assert outcome.status == 302
    assert elsewhere.arrivals == []


def test_retry_after_comes_with_the_outcome() -> None:
    with Receiver([Answer(503, {"retry-after": "17"}, body=b"busy"), Answer(429, {"retry-after": "18"})]) as receiver:
        outcomes = attempts([receiver.url] * 2)
    assert [outcome.retry_after for outcome in outcomes] == ["17", "18"]


def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with Receiver() as proxy, Receiver() as receiver:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        (outcome,) = attempts([receiver.url])
    assert (outcome.status, len(receiver.arrivals), len(proxy.arrivals)) == (200, 1, 0)


@pytest.mark.parametrize("spelling", ["127.0.0.1", "2130706433", "0x7f.1", "hooks.example"])
def test_a_private_address_is_blocked_in_every_spelling(spelling: str) -> None:
    with Receiver() as receiver:
        (outcome,) = attempts([f"http://{spelling}:{receiver.port}/in"], rules=AddressRules(), lookup=names(["127.0.0.1"]))
    assert (outcome.cause, receiver.arrivals) == ("ssrf-blocked", [])


def test_a_name_that_does_not_resolve_is_a_cause() -> None:
    assert attempts(["http://hooks.example/"])[0].cause == "dns-failed"


def test_a_name_is_dialed_at_its_judged_address_under_its_own_name() -> None:
    with Receiver() as receiver:
        (outcome,) = attempts([f"http://hooks.example:{receiver.port}/in"], lookup=names(["127.0.0.1"]))
    assert outcome.status == 200
    assert receiver.arrivals[0].headers["host"] == f"hooks.example:{receiver.port}"


def test_a_name_that_changes_its_address_is_judged_again_and_never_followed_unjudged() -> None:
    """DNS rebinding: the first answer is allowed, every later one is not."""

    async def scenario(url: str) -> list[Outcome]:
        clock = ManualClock()
        sender = Sender(Endpoints(Guard(LOCAL, names(["127.0.0.1"], ["10.0.0.1"])), clock, 2.0), clock)
        target = SendTarget(url, 5.0)
        judged = [await sender.send(target, {}, b"{}") for _ in range(3)]
        clock.advance(JUDGED_FOR)
        judged.append(await sender.send(target, {}, b"{}"))
        await sender.close()
        return judged

    with Receiver() as receiver:
        outcomes = uvloop.run(scenario(f"http://hooks.example:{receiver.port}/in"))
    assert [outcome.status for outcome in outcomes] == [200, 200, 200, None]
    assert outcomes[-1].cause == "ssrf-blocked"
    assert len(receiver.arrivals) == 3


def test_the_next_address_of_a_name_is_tried_when_the_first_does_not_listen() -> None:
    with Receiver() as receiver:
        url = f"http://hooks.example:{receiver.port}/in"
        outcomes = attempts([url] * 2, lookup=names(["127.0.0.77", "127.0.0.1"]))
    assert [outcome.status for outcome in outcomes] == [200, 200]


def test_headers_that_cannot_be_sent_are_a_cause_and_not_a_crash() -> None:
    with Receiver() as receiver:
        (outcome,) = attempts([receiver.url], **{"x-bad": "a\nb"})
    assert (outcome.cause, receiver.arrivals) == ("unsendable", [])


@pytest.mark.parametrize("url", ["ftp://a.example/", "no address", "http://", "http://a b/"])
def test_what_is_no_callback_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError):
        SendTarget(url, 1.0)


def test_tls_goes_to_the_judged_address_with_the_name_in_the_greeting() -> None:
    """The receiver speaks no TLS; its first bytes show where the client connected and which name it asked for."""
    seen = _first_bytes_of(lambda port: attempts([f"https://hooks.example:{port}/in"], lookup=names(["127.0.0.1"])))
    assert seen[0] == 0x16, "a TLS handshake"
    assert b"hooks.example" in seen


def _first_bytes_of(act: Callable[[int], list[Outcome]]) -> bytes:
    with socket.create_server(("127.0.0.1", 0)) as server:
        seen: list[bytes] = []

        def accept() -> None:
            connection, _ = server.accept()
            with connection:
                seen.append(connection.recv(4096))

        thread = threading.Thread(target=accept)
        thread.start()
        (outcome,) = act(server.getsockname()[1])
        thread.join()
        assert outcome.status is None
        return seen[0]


def test_connecting_has_a_time_of_its_own_where_a_subscription_wants_it() -> None:
    """The queue of a listener that accepts nobody is full after a few: further ones are kept waiting."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as deaf:
        address = deaf.getsockname()
        queued = [socket.socket() for _ in range(4)]
        for one in queued:
            one.setblocking(False)
            one.connect_ex(address)

        async def scenario() -> Outcome:
            sender = Sender(Endpoints(Guard(LOCAL, no_lookup), SystemClock(), 60.0), SystemClock())
            try:
                return await sender.send(SendTarget(f"http://127.0.0.1:{address[1]}/in", 60.0, 0.2), {}, b"{}")
            finally:
                await sender.close()

        outcome = uvloop.run(scenario())
        for one in queued:
            one.close()
    assert outcome.cause == "connect-timeout"
    assert 0.2 <= outcome.duration < 30
