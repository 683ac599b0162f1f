"""Credentials and signatures through the whole deliver process, from sealed documents."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook

from tests.builders import a_subscription
from tests.delivery.worlds import World, final, ids, in_world
from tests.polling import until_async
from tests.receivers import Answer, Receiver
from tidings.access.secret_box import Box, sealing_key
from tidings.access.signing_keys import new_key
from tidings.clock import Instant
from tidings.log.position import LaneNumber
from tidings.registry.credentials import Basic, Consent, SigningVersion, TokenCredential
from tidings.registry.credentials import Webhook as Handshake
from tidings.registry.model import Push
from tidings.registry.rules.credentials import sealed

KEY = new_key(SigningVersion.V1, lambda n: b"s" * n)


def subscribe(world: World, url: str, **push: Any) -> LaneNumber:
    """A subscription as a door stores it."""
    box = Box(sealing_key(world.settings.access, world.settings.data))
    lane: LaneNumber = world._put(sealed(a_subscription("billing", delivery=Push(url=url, **push)), box.seal)).lane
    return lane


def test_deliveries_and_their_retries_are_signed_with_one_id(tmp_path: Path) -> None:
    """CT-23, SW-04."""

    async def scenario(world: World) -> None:
        with Receiver([Answer(503), Answer(503), Answer(200)]) as receiver:
            lane = subscribe(world, receiver.url, signing=(KEY,), headers={"x-api": "hush"}, inflight=1)
            async with world.delivering():
                positions = await world.publish(3, lane)
                await final(world, lane, positions[-1].offset)
            found: dict[str, set[str]] = {}
            for arrival, event in zip(receiver.arrivals, ids(receiver.arrivals), strict=True):
                Webhook(KEY.secret).verify(arrival.body.decode(), arrival.headers)
                found.setdefault(event, set()).add(arrival.headers["webhook-id"])
                assert arrival.headers["x-api"] == "hush"
            assert len(receiver.arrivals) == 5
            assert all(len(one) == 1 for one in found.values())
            assert len(set.union(*found.values())) == 3

    in_world(tmp_path, scenario)


def test_a_changed_credential_holds_for_the_next_attempt(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        with Receiver([Answer(500)]) as receiver:
            receiver.script = lambda arrival: Answer(200 if "authorization" in arrival.headers else 500)
            lane = subscribe(world, receiver.url, tries=1000)
            async with world.delivering():
                await world.publish(1, lane)
                await until_async(lambda: bool(receiver.arrivals))
                subscribe(world, receiver.url, tries=1000, credential=Basic(user="u", password="p"))
                await final(world, lane, 1)

    in_world(tmp_path, scenario)


def test_an_expired_credential_is_recorded_and_sends_nothing(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        with Receiver() as receiver:
            lane = subscribe(world, receiver.url, tries=2, credential=TokenCredential(token="hush", expires=Instant(1)))
            async with world.delivering():
                await world.publish(1, lane)
                await until_async(lambda: bool(world.reader.dead_letters(lane, 0, 10)))
            assert receiver.arrivals == []
            assert world.reader.dead_letters(lane, 0, 10)[0].reason.startswith("credential-expired")

    in_world(tmp_path, scenario)


def test_nothing_is_sent_before_the_callback_has_consented(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        with Receiver() as receiver:
            pending = Handshake(origin="hub.example", consent=Consent.PENDING, secret_digest="x")
            lane = subscribe(world, receiver.url, webhook=pending)
            async with world.delivering():
                (position,) = await world.publish(1, lane)
                await asyncio.sleep(0.2)
                assert receiver.arrivals == []
                subscribe(world, receiver.url, webhook=Handshake(origin="hub.example"))
                await final(world, lane, position.offset)
            assert receiver.arrivals[0].headers["webhook-request-origin"] == "hub.example"

    in_world(tmp_path, scenario)


def test_secrets_are_in_no_file_and_no_log_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    async def scenario(world: World) -> None:
        with Receiver([Answer(401), Answer(500)]) as receiver:
            headers = {"x-api": "hush-header"}
            lane = subscribe(
                world, receiver.url, tries=3, headers=headers, signing=(KEY,), credential=TokenCredential(token="hush-token")
            )
            async with world.delivering():
                await world.publish(2, lane)
                await until_async(lambda: len(world.reader.dead_letters(lane, 0, 10)) == 2)
            assert receiver.arrivals[0].headers["authorization"] == "Bearer hush-token"
            assert world.reader.deliveries(lane, None, 10)

    in_world(tmp_path, scenario)
    for file in tmp_path.rglob("*"):
        if file.is_file() and file.name != "hub.key":
            content = file.read_bytes()
            assert b"hush" not in content and KEY.secret.encode() not in content, file.name
    assert "hush" not in caplog.text and KEY.secret not in caplog.text
    assert "callbacks may reach public addresses and this machine itself" in caplog.text
