"""Deliveries over TLS, with an authority of our own: the certificate must be trusted, current, and for that name."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
import uvloop

from tests.authorities import Authority
from tests.delivery.worlds import World, final, ids, in_world
from tests.receivers import Answer, Receiver
from tidings.clock import ManualClock, SystemClock
from tidings.delivery.push.egress.address_guard import LOOPBACK, AddressRules, Guard
from tidings.delivery.push.egress.endpoints import JUDGED_FOR, Endpoints, authorities_in
from tidings.delivery.push.egress.sender import Sender, SendTarget
from tidings.delivery.push.policy.decision import Outcome
from tidings.errors import Misconfigured


async def lookup(host: str, port: int) -> Sequence[str]:
    return ["127.0.0.1"]


def attempts(url: str, authorities: Sequence[bytes], count: int = 1) -> list[Outcome]:
    async def scenario() -> list[Outcome]:
        guard = Guard(AddressRules(tuple(LOOPBACK)), lookup)
        sender = Sender(Endpoints(guard, SystemClock(), 2.0, authorities), SystemClock())
        try:
            return [await sender.send(SendTarget(url, 5.0), {}, b"{}") for _ in range(count)]
        finally:
            await sender.close()

    return uvloop.run(scenario())


def test_a_delivery_goes_to_the_judged_address_under_the_certified_name(tmp_path: Path) -> None:
    """The name exists nowhere: only the pinned address can have led there."""
    authority = Authority(tmp_path)
    with Receiver(tls=authority.serving("hooks.example")) as receiver:
        outcomes = attempts(f"https://hooks.example:{receiver.port}/in", [authority.pem], count=3)
    assert [outcome.status for outcome in outcomes] == [200] * 3
    assert receiver.arrivals[0].headers["host"] == f"hooks.example:{receiver.port}"
    assert receiver.connections == 1, "kept alive"


def test_a_literal_address_is_certified_as_such(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with Receiver(tls=authority.serving("127.0.0.1")) as receiver:
        (outcome,) = attempts(f"https://127.0.0.1:{receiver.port}/in", [authority.pem])
    assert outcome.status == 200


@pytest.mark.parametrize(
    ("names", "life", "trusted"),
    [
        (["hooks.example"], timedelta(hours=1), False),
        (["other.example"], timedelta(hours=1), True),
        (["hooks.example"], timedelta(hours=-1), True),
    ],
)
def test_a_certificate_that_does_not_hold_is_a_cause_and_nothing_is_sent(
    tmp_path: Path, names: list[str], life: timedelta, trusted: bool
) -> None:
    authority = Authority(tmp_path)
    with Receiver(tls=authority.serving(*names, life=life)) as receiver:
        (outcome,) = attempts(f"https://hooks.example:{receiver.port}/in", [authority.pem] if trusted else [])
    assert (outcome.status, outcome.cause, receiver.arrivals) == (None, "tls-failed", [])


def test_a_name_that_changes_its_address_is_never_followed_unjudged(tmp_path: Path) -> None:
    """DNS rebinding over TLS: a client of its own per address, so that even kept connections stay with what was judged."""
    answers = [["127.0.0.1"], ["127.0.0.1", "10.0.0.1"], ["169.254.169.254"]]

    async def changing(host: str, port: int) -> Sequence[str]:
        return answers.pop(0) if len(answers) > 1 else answers[0]

    async def scenario(url: str) -> list[Outcome]:
        clock = ManualClock()
        sender = Sender(Endpoints(Guard(AddressRules(tuple(LOOPBACK)), changing), clock, 2.0, [authority.pem]), clock)
        target, outcomes = SendTarget(url, 5.0), []
        for _ in range(3):
            outcomes.append(await sender.send(target, {}, b"{}"))
            clock.advance(JUDGED_FOR)
        await sender.close()
        return outcomes

    authority = Authority(tmp_path)
    with Receiver(tls=authority.serving("hooks.example")) as receiver:
        outcomes = uvloop.run(scenario(f"https://hooks.example:{receiver.port}/in"))
    assert [outcome.status for outcome in outcomes] == [200, None, None]
    assert {outcome.cause for outcome in outcomes[1:]} == {"ssrf-blocked"}
    assert len(receiver.arrivals) == 1


def test_the_hub_trusts_the_authorities_of_its_settings(tmp_path: Path) -> None:
    authority = Authority(tmp_path)

    async def scenario(world: World) -> None:
        with Receiver([Answer(500), Answer(200)], tls=authority.serving("localhost", "127.0.0.1")) as receiver:
            lane = world.subscribe("billing", f"https://localhost:{receiver.port}/in")
            async with world.delivering():
                positions = await world.publish(1, lane)
                await final(world, lane, positions[-1].offset)
            assert ids(receiver.arrivals) == ["1", "1"]

    in_world(tmp_path / "data", scenario, ca_file=str(authority.file))


def test_a_file_may_hold_several_authorities(tmp_path: Path) -> None:
    first, second = Authority(tmp_path, "first"), Authority(tmp_path, "second")
    bundle = tmp_path / "bundle.pem"
    bundle.write_bytes(b"# ours\n" + first.pem + b"\n" + second.pem)
    with Receiver(tls=second.serving("hooks.example")) as receiver:
        (outcome,) = attempts(f"https://hooks.example:{receiver.port}/in", authorities_in(str(bundle)))
    assert outcome.status == 200


@pytest.mark.parametrize("content", [None, b"nothing", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
def test_authorities_that_cannot_be_read_refuse_the_start(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(Misconfigured, match=r"push\.ca_file"):
        authorities_in(str(file))
    assert authorities_in("") == []
