"""Projected entries are sent, tried again and buried as what projections left of them, and never whole."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from tests.delivery.worlds import World, a_pushed_lane, final, in_world
from tests.polling import until_async
from tests.receivers import Answer, Receiver
from tidings.events.attribute_rules import checked
from tidings.events.stored import head_of
from tidings.lanes import parts as lane_parts
from tidings.lanes.parts import key_of
from tidings.lanes.port import Mark
from tidings.lanes.sink import Part, PartKey, Routed
from tidings.lanes.sqlite.block import packed
from tidings.lanes.sqlite.lanes import EmbeddedLanes
from tidings.lanes.sqlite.writer import SqliteLanesReader
from tidings.log.commands import Redeliver
from tidings.log.port import Draft
from tidings.log.position import EMBEDDED, LaneNumber, Offset, Position, embedded
from tidings.log.sqlite.reader import SqliteLogReader
from tidings.registry.model import ContentMode

WHOLE = b'{"secret":1,"n":%d}'
PART = b'{"n":1.0%d}'


async def publish_parts(
    world: World, lane: LaneNumber, count: int, *, whole: Sequence[int] = (), bodies: bool = True, **more: str
) -> list[int]:
    """Events of which the lane has only a part, but for those listed in `whole`. `more`: further attributes of all of them."""
    named = {**more, "specversion": "1.0", "source": "/orders", "type": "order.created", "datacontenttype": "application/json"}
    events = [checked({**named, "id": str(n)}, WHOLE % n) for n in range(count)]
    drafts = [Draft(world.topic, world.clock.now(), 0, head_of(event), event.data) for event in events]
    offsets = [int(position.offset) for position in await world.log.append(drafts)]
    parts = [Part(PartKey(Position(EMBEDDED, Offset(at)), key_of(PART % n)), PART % n) for n, at in enumerate(offsets)]
    digests = b"".join(lane_parts.WHOLE if n in whole else part.key.key for n, part in enumerate(parts))
    world.lanes.write(Routed([packed(lane, offsets, digests)], embedded(offsets[-1]), parts=parts if bodies else ()))
    return offsets


def datas(receiver: Receiver) -> list[bytes]:
    return [arrival.body.partition(b'"data":')[2].removesuffix(b"}") for arrival in receiver.arrivals]


def test_parts_and_whole_events_of_one_lane_arrive_as_they_are_kept(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        async with a_pushed_lane(world) as (lane, receiver):
            await publish_parts(world, lane, 3, whole=[1])
            await until_async(lambda: len(receiver.arrivals) == 3)
        assert sorted(datas(receiver)) == sorted([PART % 0, WHOLE % 1, PART % 2])
        assert sorted(json.loads(arrival.body)["id"] for arrival in receiver.arrivals) == ["0", "1", "2"]

    in_world(tmp_path, scenario)


def test_a_part_does_not_say_where_the_whole_is(tmp_path: Path) -> None:
    """Neither on its way, nor as a dead letter."""

    async def scenario(world: World) -> None:
        async with a_pushed_lane(world, [Answer(400)]) as (lane, receiver):
            await publish_parts(world, lane, 2, whole=[1], dataref="https://shop.example/whole")
            await until_async(lambda: len(receiver.arrivals) == 2)
            await until_async(lambda: len(world.reader.dead_letters(lane, 0, 10)) == 2)
            heads = {one.head for one in world.reader.dead_letters(lane, 0, 10)}
        assert {json.loads(one.body)["id"]: "dataref" in json.loads(one.body) for one in receiver.arrivals} == {
            "0": False,
            "1": True,
        }
        assert sorted(b"dataref" in head for head in heads) == [False, True]

    in_world(tmp_path, scenario)


def test_a_binary_request_has_the_part_as_its_body(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        async with a_pushed_lane(world, mode=ContentMode.BINARY) as (lane, receiver):
            await publish_parts(world, lane, 1)
            await until_async(lambda: len(receiver.arrivals) == 1)
        (arrival,) = receiver.arrivals
        assert (arrival.body, arrival.headers["content-type"], arrival.headers["ce-id"]) == (PART % 0, "application/json", "0")

    in_world(tmp_path, scenario)


def test_lanes_with_different_parts_of_one_event_do_not_mix_them_up(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        with Receiver() as mine, Receiver() as others:
            lanes = [world.subscribe("mine", mine.url), world.subscribe("others", others.url)]
            async with world.delivering():
                first = await world.publish(1)
                at = first[0].offset
                parts = [Part(PartKey(Position(EMBEDDED, at), key_of(text)), text) for text in (b'{"a":1}', b'{"b":2}')]
                later = await world.log.append([Draft(world.topic, world.clock.now(), 0, b'{"id":"2"}', None)])
                end = later[0].offset
                body = [Part(PartKey(Position(EMBEDDED, end), part.key.key), part.data) for part in parts]
                blocks = [packed(lane, [end], part.key.key) for lane, part in zip(lanes, parts, strict=True)]
                world.lanes.write(Routed(blocks, embedded(end), parts=body))
                await until_async(lambda: len(mine.arrivals) == len(others.arrivals) == 1)
            assert (datas(mine), datas(others)) == ([b'{"a":1}'], [b'{"b":2}'])

    in_world(tmp_path, scenario)


def test_a_part_that_is_tried_again_is_still_a_part(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        async with a_pushed_lane(world, [Answer(status=503), Answer(status=503), Answer()]) as (lane, receiver):
            await publish_parts(world, lane, 1)
            await until_async(lambda: len(receiver.arrivals) == 3)
        assert datas(receiver) == [PART % 0] * 3

    in_world(tmp_path, scenario)


def test_a_dead_letter_keeps_the_part_and_sends_it_when_the_event_is_gone(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        async with a_pushed_lane(world, [Answer(status=400), Answer()], tries=1) as (lane, receiver):
            offsets = await publish_parts(world, lane, 1)
            await until_async(lambda: bool(world.reader.dead_letters(lane, 0, 10)))
            assert world.reader.dead_letters(lane, 0, 10)[0].data == PART % 0
            await world.retire()
            assert await world.command(lane, Redeliver((Position(EMBEDDED, Offset(offsets[0])),), False)) == ""
            await until_async(lambda: len(receiver.arrivals) == 2)
        assert datas(receiver) == [PART % 0] * 2

    in_world(tmp_path, scenario)


def test_an_event_whose_part_is_gone_is_never_sent_whole(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        async with a_pushed_lane(world) as (lane, receiver):
            offsets = await publish_parts(world, lane, 1, bodies=False)
            await final(world, lane, offsets[-1])
        assert receiver.arrivals == []
        assert world.reader.lane(lane).expired == 1

    in_world(tmp_path, scenario)


def test_entries_are_found_as_what_projections_left_whatever_block_they_are_in(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        lane = world.subscribe_pull("parts")
        offsets = await publish_parts(world, lane, 3, whole=[1]) + await publish_parts(world, lane, 2)
        lanes, log = SqliteLanesReader(tmp_path), SqliteLogReader(tmp_path)
        wanted = [
            Mark(n, Position(EMBEDDED, Offset(at))) for n, at in ((5, offsets[4]), (2, offsets[1]), (1, offsets[0]), (9, 999))
        ]
        found = await EmbeddedLanes(lanes, log).fetch(lane, wanted)
        assert [entry.number for entry in found] == [5, 2, 1, 9]
        assert [entry.stored and entry.stored.data for entry in found] == [PART % 1, WHOLE % 1, PART % 0, None]
        lanes.close()
        log.close()

    in_world(tmp_path, scenario)
