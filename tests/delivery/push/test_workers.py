"""Several deliver workers: lanes are shared, files are read as one, and another number of workers loses nothing."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.delivery.worlds import World, final, ids, in_world
from tests.polling import until_async
from tests.receivers import Answer, Receiver
from tidings.delivery.push.lane_owner import owner_of, part_name, worker_of
from tidings.delivery.push.sqlite import SqliteDeliveryStore
from tidings.delivery.push.sqlite.worker_count import reshare
from tidings.errors import DataFolderUnusable
from tidings.log.commands import DropDeadLetters, Redeliver, Rewind, Suspend
from tidings.log.position import LaneNumber


def test_every_lane_has_one_owner_and_every_worker_a_name() -> None:
    assert [owner_of(LaneNumber(n), 3) for n in range(6)] == [0, 1, 2, 0, 1, 2]
    assert [worker_of(part_name(n)) for n in range(16)] == list(range(16))


def test_workers_share_the_lanes_and_readers_see_one_whole(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        with Receiver() as receiver:
            lanes = [world.subscribe(f"s{n}", receiver.url) for n in range(5)]
            async with world.delivering(workers=3):
                positions = await world.publish(10, *lanes)
                for lane in lanes:
                    await final(world, lane, 10)
                    assert await world.command(lane, Redeliver(positions=(positions[0],))) == ""
                assert await world.command(LaneNumber(999), Suspend()) == "there is no such subscription"
                await until_async(lambda: len(receiver.arrivals) == 55)
        assert set(world.reader.lanes()) == set(lanes)
        assert Counter(ids(receiver.arrivals)) == {"1": 10} | {str(n): 5 for n in range(2, 11)}

    in_world(tmp_path, scenario)
    assert {path.name for path in tmp_path.glob("delivery-*.db")} == {"delivery-0.db", "delivery-1.db", "delivery-2.db"}


@pytest.mark.parametrize(("first", "second"), [(1, 3), (3, 1), (2, 3)])
def test_another_number_of_workers_goes_on_where_the_others_stopped(tmp_path: Path, first: int, second: int) -> None:
    async def scenario(world: World) -> None:
        with Receiver(lambda arrival: Answer(400 if b'"id":"2"' in arrival.body else 200)) as receiver:
            lanes = [world.subscribe(f"s{n}", receiver.url, answers={"400": "give-up"}) for n in range(6)]
            async with world.delivering(first):
                await world.publish(4, *lanes)
                for lane in lanes:
                    await final(world, lane, 4)
                assert await world.command(lanes[0], Rewind(to={}), id="once") == ""
                await until_async(lambda: world.reader.lane(lanes[0]).delivered == 6)
                await world.command(lanes[5], Suspend())
            before = len(receiver.arrivals)
            async with world.delivering(second):
                await world.publish(1, *lanes, first=5)
                for lane in lanes[:5]:
                    await final(world, lane, 5)
                # Nothing came again but what is new, and no command was applied twice.
                assert len(receiver.arrivals) - before == 5
                assert [world.reader.lane(lane).dead_letters for lane in lanes] == [1] * 6
                assert world.reader.lane(lanes[5]).state == "suspended"
                assert len(world.reader.deliveries(lanes[1], None, 100)) == 5
                await world.command(lanes[2], DropDeadLetters())
                assert world.reader.dead_letters(lanes[2], 0, 10) == []

    in_world(tmp_path, scenario)


def test_nothing_is_shared_anew_while_a_worker_of_another_number_runs(tmp_path: Path) -> None:
    store = SqliteDeliveryStore(tmp_path, 0)
    with pytest.raises(DataFolderUnusable):
        reshare(tmp_path, 2)
    store.close()
    assert reshare(tmp_path, 2) == 0
    assert (tmp_path / "delivery-1.db").exists()
