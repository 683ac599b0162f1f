"""The port for formats of doors, by a door that there is not: what each step adds to a request, and what becomes of trouble."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jwt
import pytest

from tests.delivery.push import club_format
from tests.delivery.worlds import World, a_pushed_lane, final, in_world, quick_settings
from tests.polling import until_async
from tests.receivers import Answer, Receiver
from tidings.delivery.push.egress.probes import asked_of
from tidings.delivery.push.policy.policy import BreakerPolicy, policy_of
from tidings.delivery.push.request.formats import Formats
from tidings.doors import all_doors
from tidings.doors.door import Door
from tidings.errors import Misconfigured
from tidings.registry.credentials import Basic
from tidings.registry.formats import Layout
from tidings.registry.model import Push

CLUB = Door(
    name="club",
    title="Club",
    prefix="/club",
    application="",
    claims=lambda path: None,
    format="tests.delivery.push.club_format",
)


def layout(member: str = "ann", **settings: Any) -> Layout:
    return Layout(format="club", settings={"member": member, **settings})


@pytest.fixture(autouse=True)
def club(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(all_doors, "DOORS", (*all_doors.DOORS, CLUB))
    club_format.LAID.clear()


def test_each_step_adds_its_part_and_the_later_goes_over_the_earlier(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        wishes: dict[str, Any] = {"retry_first": 0.01, "headers": {"X-Own": "1", "X-Hub": "mine"}, "layout": layout()}
        async with a_pushed_lane(world, (Answer(500), Answer()), **wishes) as (lane, receiver):
            await world.publish(1, lane)
            await final(world, lane, 1)
        first, second = receiver.arrivals
        body = json.loads(first.body)
        assert (body["of"], body["by"], body["as"]) == ({"n": 1}, "ann", first.headers["tidings-delivery-id"])
        assert first.headers["x-own"] == "1" and first.headers["x-hub"].startswith("http://127.0.0.1:")
        assert first.headers["x-member"] == "of the entry"
        assert [one.headers["x-tries"] for one in (first, second)] == ["0", "1"]
        assert second.body == first.body
        token = jwt.decode(first.headers["authorization"].removeprefix("Bearer "), options={"verify_signature": False})
        assert (token["requestPath"], token["subscriberId"]) == ("/club", "ann")

    in_world(tmp_path, scenario)


def test_lanes_of_one_key_share_what_is_laid_out_and_have_their_own_part(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        with Receiver() as ann, Receiver() as ben:
            one = world.subscribe("a", ann.url, layout=layout("ann"))
            other = world.subscribe("b", ben.url, layout=layout("ben"))
            positions = await world.publish(3, one, other)
            async with world.delivering():
                await final(world, one, positions[-1].offset)
                await final(world, other, positions[-1].offset)
        assert {json.loads(arrival.body)["by"] for arrival in ann.arrivals} == {"ann"}
        assert {json.loads(arrival.body)["by"] for arrival in ben.arrivals} == {"ben"}
        assert len(club_format.LAID) < 6

    in_world(tmp_path, scenario)


def test_an_attempt_may_go_elsewhere_or_fail_without_a_request(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        with Receiver() as moved:
            wishes: dict[str, Any] = {"tries": 2, "retry_first": 0.01, "preset": "cloudevents"}
            async with a_pushed_lane(world, layout=layout(elsewhere={"1": moved.url}), **wishes) as (lane, receiver):
                _, lost = await world.publish(2, lane)
                await until_async(lambda: world.reader.lane(lane).dead_letters == 1)
                (letter,) = world.reader.dead_letters(lane, 0, 10)
        assert [arrival.body for arrival in moved.arrivals] == [b'"moved"'] and not receiver.arrivals
        assert (letter.position.offset, letter.tries) == (lost.offset, 2) and "nobody-there" in letter.reason

    in_world(tmp_path, scenario)


def test_a_format_may_lay_out_batches_itself(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        wishes: dict[str, Any] = {"batch_size": 2, "batch_time": 5.0, "retry_first": 0.01}
        async with a_pushed_lane(world, (Answer(500), Answer()), layout=layout(), **wishes) as (lane, receiver):
            await world.publish(2, lane)
            await final(world, lane, 2)
        first, second = receiver.arrivals
        assert [json.loads(line)["of"] for line in first.body.splitlines()] == [{"n": 1}, {"n": 2}]
        assert first.headers["content-type"] == "text/plain" and first.headers["x-member"] == "ann"
        assert (first.headers["x-tries"], second.headers["x-tries"]) == ("0", "1")
        assert first.headers["tidings-batch-id"] == second.headers["tidings-batch-id"]

    in_world(tmp_path, scenario)


def test_a_layout_that_no_door_reads_stops_its_own_lane_only(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: World) -> None:
        with Receiver() as good, Receiver() as bad:
            unknown = world.subscribe("unknown", bad.url, layout=Layout(format="later"))
            broken = world.subscribe("broken", bad.url, layout=Layout(format="club", settings={"member": 1}))
            lane = world.subscribe("good", good.url, layout=layout())
            positions = await world.publish(2, unknown, broken, lane)
            async with world.delivering():
                await final(world, lane, positions[-1].offset)
        assert len(good.arrivals) == 2 and not bad.arrivals
        assert "nothing is sent for unknown" in caplog.text and "nothing is sent for broken" in caplog.text

    in_world(tmp_path, scenario)


def test_a_subscriptions_own_credential_goes_before_that_of_its_format(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        async with a_pushed_lane(world, layout=layout(), credential=Basic(user="u", password="")) as (lane, receiver):
            await world.publish(1, lane)
            await final(world, lane, 1)
        assert receiver.arrivals[0].headers["authorization"].startswith("Basic ")

    in_world(tmp_path, scenario)


def test_groups_share_no_probe(tmp_path: Path) -> None:
    settings = quick_settings(tmp_path)
    formats = Formats({"club": CLUB.format}, settings)

    def probe(member: str) -> object:
        push = Push(url="http://sink.example/in", breaker=True, layout=layout(member))
        return asked_of(policy_of(push, settings.push, own=formats.of(push.layout)), BreakerPolicy())

    assert probe("ann") == probe("ann") != probe("ben")
    with pytest.raises(Misconfigured):
        formats.of(Layout(format="horizon"))
