"""The owner's end of streams, spoken to over its Unix socket: who owns which lane, and what is said."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from tests.builders import a_subscription
from tests.delivery.worlds import World, a_pushed_lane, final, in_world
from tests.polling import until_async
from tidings.delivery.push.lane_owner import owner_of
from tidings.delivery.sse.socket_protocol import (
    TAKEN,
    Begun,
    StreamEnd,
    StreamEntry,
    StreamOptions,
    Unpacker,
    socket_path,
    told_in,
    wish_message,
)
from tidings.delivery.sse.stream import UNTAKEN, UNTAKEN_BYTES
from tidings.events.stored import event_from
from tidings.log.position import LaneNumber
from tidings.registry.model import Stream


class Door:
    """A door that says what the test wants it to say."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self.writer = reader, writer
        self._unpacker = Unpacker()
        self._told: list[Begun | StreamEntry | StreamEnd] = []

    @classmethod
    async def at(cls, world: World, wish: StreamOptions, workers: int = 1) -> Door:
        path = socket_path(world.settings.data, owner_of(wish.lane, workers))
        door = cls(*await asyncio.open_unix_connection(str(path)))
        door.writer.write(wish_message(wish))
        return door

    async def next(self) -> Begun | StreamEntry | StreamEnd | None:
        """What is said next; None when the connection has ended."""
        while not self._told:
            data = await self._reader.read(4096)
            if not data:
                return None
            self._told += [told_in(message) for message in self._unpacker.messages(data)]
        return self._told.pop(0)

    async def ids(self, count: int) -> list[str]:
        """The ids of the next events."""
        told = [await self.next() for _ in range(count)]
        return [event_from(one.head, one.data).id for one in told if isinstance(one, StreamEntry)]


def streamed(world: World, name: str) -> LaneNumber:
    document = a_subscription(name, delivery=Stream())
    (stored,) = world.registry.put([document], by="test", at=world.clock.now(), marks={})
    return stored.lane  # type: ignore[union-attr]


def test_each_worker_streams_its_own_lanes(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        lanes = [streamed(world, name) for name in ("a", "b")]
        assert {owner_of(lane, 2) for lane in lanes} == {0, 1}
        async with world.delivering(workers=2):
            doors = [await Door.at(world, StreamOptions(lane), workers=2) for lane in lanes]
            assert [await door.next() for door in doors] == [Begun(), Begun()]
            await world.publish(2, *lanes)
            assert [await door.ids(2) for door in doors] == [["1", "2"]] * 2
            stranger = Door(*await asyncio.open_unix_connection(str(socket_path(tmp_path, owner_of(lanes[1], 2)))))
            stranger.writer.write(wish_message(StreamOptions(lanes[0])))
            assert await stranger.next() is StreamEnd.GONE

    in_world(tmp_path, scenario)


def test_only_what_was_taken_is_final_and_the_rest_comes_again(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        lane = streamed(world, "a")
        positions = await world.publish(3, lane)
        async with world.delivering():
            door = await Door.at(world, StreamOptions(lane))
            assert await door.next() == Begun()
            assert await door.ids(3) == ["1", "2", "3"]
            door.writer.write(TAKEN)
            await until_async(lambda: world.reader.lane(lane).delivered == 1)
            door.writer.close()
            again = await Door.at(world, StreamOptions(lane))
            assert await again.next() == Begun()
            assert await again.ids(2) == ["2", "3"]
            again.writer.write(TAKEN * 2)
            await final(world, lane, positions[-1].offset)

    in_world(tmp_path, scenario)


def test_who_does_not_say_what_was_taken_is_sent_no_more_than_a_window(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        lane = streamed(world, "a")
        await world.publish(UNTAKEN + 10, lane)
        async with world.delivering():
            door = await Door.at(world, StreamOptions(lane))
            assert await door.next() == Begun()
            assert len(await door.ids(UNTAKEN)) == UNTAKEN
            waiting = asyncio.ensure_future(door.next())
            done, _ = await asyncio.wait([waiting], timeout=0.3)
            assert not done
            door.writer.write(TAKEN)
            assert isinstance(await waiting, StreamEntry)

    in_world(tmp_path, scenario)


def test_large_entries_are_sent_two_at_a_time(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        lane = streamed(world, "a")
        await world.publish(4, lane, subject="x" * UNTAKEN_BYTES)
        async with world.delivering():
            door = await Door.at(world, StreamOptions(lane))
            assert await door.next() == Begun()
            assert await door.ids(2) == ["1", "2"]
            door.writer.write(TAKEN)
            assert await door.ids(1) == ["3"]

    in_world(tmp_path, scenario)


def test_what_a_client_says_it_has_seen_is_final_though_nobody_saved_it(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        lane = streamed(world, "a")
        positions = await world.publish(100, lane)
        seen = positions[59]
        async with world.delivering():
            door = await Door.at(world, StreamOptions(lane, after=seen, seen=seen))
            assert await door.next() == Begun()
            assert await door.ids(2) == ["61", "62"]
            await until_async(lambda: world.reader.lane(lane).delivered == 60)
            assert world.reader.lane(lane).low_water.position == seen

    in_world(tmp_path, scenario)


def test_what_is_no_wish_ends_the_connection(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        async with world.delivering():
            for rubbish in (b"\x00\x00\x00\x02{}", b"\xff" * 2000):
                reader, writer = await asyncio.open_unix_connection(str(socket_path(tmp_path, 0)))
                writer.write(rubbish)
                assert await reader.read() == b""

    in_world(tmp_path, scenario)


def test_without_a_socket_callbacks_are_served_all_the_same(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        # A folder with something in it stands where the socket would be.
        (socket_path(tmp_path, 0) / "in the way").mkdir(parents=True)
        async with a_pushed_lane(world) as (lane, receiver):
            (position,) = await world.publish(1, lane)
            await final(world, lane, position.offset)
            assert len(receiver.arrivals) == 1

    in_world(tmp_path, scenario)
    # Where paths are long, it is outside of the test's own folder.
    shutil.rmtree(socket_path(tmp_path, 0))
