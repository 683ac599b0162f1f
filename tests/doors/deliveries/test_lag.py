"""The lag of subscriptions: what is gone is none, and what nobody reads is not the hub's."""

from __future__ import annotations

from pathlib import Path

from tests.builders import a_subscription
from tests.delivery.worlds import World, in_world
from tests.polling import until_async
from tests.receivers import Receiver
from tidings.clock import Instant
from tidings.doors.deliveries.lag import Gauges, Lags, measured
from tidings.lanes.sqlite.lanes import EmbeddedLanes
from tidings.lanes.sqlite.writer import SqliteLanesReader
from tidings.log.commands import Activate, Suspend
from tidings.log.position import embedded
from tidings.log.sqlite.events import SqliteEventLog
from tidings.log.sqlite.reader import SqliteLogReader
from tidings.registry.model import Stream


def test_what_is_gone_is_no_lag_and_hides_no_other_lag(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        blocks, log = SqliteLanesReader(tmp_path), SqliteLogReader(tmp_path)
        lanes = EmbeddedLanes(blocks, log)
        gauges = Gauges(SqliteEventLog(log), lanes, lanes, world.reader)

        async def lags() -> Lags:
            subscriptions = list(world.registry.snapshot().subscriptions.values())
            return await measured(gauges, subscriptions, Instant(world.clock.now() + 1))

        async def events() -> dict[str, int]:
            return {str(one.name): one.events for one in (await lags()).subscriptions}

        with Receiver() as receiver:
            gone, waiting = world.subscribe("gone", receiver.url), world.subscribe("waiting", receiver.url)
            async with world.delivering():
                await world.command(gone, Suspend())
                await world.command(waiting, Suspend())
                last = (await world.publish(3, gone))[-1].offset
                assert await events() == {"gone": 3, "waiting": 0}
                await world.expire(Instant(world.clock.now() + 1))
                await world.publish(2, waiting, first=4)
                assert (await lags()).delivery.seconds > 0, "what is still there is waiting"
                world.lanes.trim(embedded(last))
                assert await events() == {"gone": 0, "waiting": 2}
                await world.command(gone, Activate())
                await until_async(lambda: world.reader.lane(gone).expired == 3)
                assert await events() == {"gone": 0, "waiting": 2}
        blocks.close()
        log.close()

    in_world(tmp_path, scenario)


def test_what_only_others_fetch_is_no_lag_of_delivery(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        blocks, log = SqliteLanesReader(tmp_path), SqliteLogReader(tmp_path)
        lanes = EmbeddedLanes(blocks, log)
        gauges = Gauges(SqliteEventLog(log), lanes, lanes, world.reader)
        stream = world._put(a_subscription("stream", delivery=Stream())).lane
        numbers = [stream, world.subscribe_pull("feed")]
        await world.publish(3, *numbers)
        subscriptions = list(world.registry.snapshot().subscriptions.values())
        found = await measured(gauges, subscriptions, Instant(world.clock.now() + 1))
        assert {str(one.name): one.events for one in found.subscriptions} == {"stream": 3, "feed": 3}
        assert (found.delivery.events, found.delivery.seconds) == (0, 0.0)
        blocks.close()
        log.close()

    in_world(tmp_path, scenario)
