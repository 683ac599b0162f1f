"""What doors tell of events: statuses joined with publishing times, retention, ids of deliveries and tracking."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.api_process import ApiProcess, an_api
from tests.builders import a_position
from tests.delivery.push.lanes import a_mark
from tests.delivery.worlds import World
from tests.polling import until
from tidings.clock import SECOND, Instant
from tidings.delivery.push.lane.saved import encode
from tidings.delivery.push.lane.state import LaneState
from tidings.delivery.push.sqlite import SqliteDeliveryStore
from tidings.delivery.push.store import Attempted, Flush, LaneTally, SavedLane
from tidings.events.attribute_rules import checked
from tidings.events.stored import head_of
from tidings.ids import DeliveryIds
from tidings.lanes.sink import Routed
from tidings.lanes.sqlite.block import packed
from tidings.log.port import Draft
from tidings.log.position import LaneNumber, embedded
from tidings.registry.delivery_options import Tracking
from tidings.registry.model import Topic

HOUR = 3600 * SECOND


def published(folder: Path, *ages: float, **push: Any) -> LaneNumber:
    """Events of these ages in hours, in the lane of `billing`, whose topic keeps them for an hour. Nothing was sent yet."""

    async def fill() -> LaneNumber:
        world = World(folder)
        topic = world.registry.snapshot().topics[next(iter(world.registry.snapshot().topics))]
        world.registry.put([_short(topic)], by="test", at=world.clock.now(), marks=embedded(0))
        lane = world.subscribe("billing", "http://127.0.0.1:9/in", **push)
        context = {"specversion": "1.0", "source": "/s", "type": "t"}
        drafts = [
            Draft(
                world.topic,
                Instant(round(world.clock.now() - age * HOUR)),
                0,
                head_of(checked({**context, "id": f"e{n}"})),
                b"1",
            )
            for n, age in enumerate(ages, 1)
        ]
        await world.log.append(drafts)
        offsets = list(range(1, len(ages) + 1))
        world.lanes.write(Routed([packed(lane, offsets)], embedded(offsets[-1])))
        await world.close()
        return lane

    return asyncio.run(fill())


def _short(topic: Topic) -> Topic:
    return Topic(name=topic.name, number=topic.number, retention=3600.0)


def states(api: ApiProcess, **query: object) -> list[tuple[str, str]]:
    found = api.call("GET", "/api/subscriptions/billing/deliveries", **query).json
    return [(one["cursor"], one["state"]) for one in found["deliveries"]]


def test_what_waits_longer_than_its_retention_reads_as_expired(tmp_path: Path) -> None:
    published(tmp_path, 2.0, 1.5, 0.5)
    with an_api(tmp_path) as api:
        assert states(api) == [("0-3", "processed"), ("0-2", "expired"), ("0-1", "expired")]
        assert states(api, state="expired") == [("0-2", "expired"), ("0-1", "expired")]
        assert states(api, state="expired", limit=1) == [("0-2", "expired")]
        assert states(api, state="processed") == [("0-3", "processed")]
        one = api.call("GET", "/api/subscriptions/billing/deliveries/0-1").json
        assert (one["cause"], one["message"]) == ("expired", "its retention ended before it was delivered")


def test_events_are_chosen_by_when_they_were_published(tmp_path: Path) -> None:
    lane = published(tmp_path, 0.9, 0.5, 0.1)
    assert lane == 1
    with an_api(tmp_path) as api:
        times = {
            one["cursor"]: one["published"]
            for one in api.call("GET", "/api/subscriptions/billing/deliveries").json["deliveries"]
        }
        assert [cursor for cursor, _ in states(api, **{"from": times["0-2"]})] == ["0-3", "0-2"]
        assert [cursor for cursor, _ in states(api, to=times["0-2"])] == ["0-1"]
        assert states(api, event="e2") == [("0-2", "processed")]


def test_the_id_of_a_delivery_leads_to_it_also_when_its_subscription_is_gone(tmp_path: Path) -> None:
    lane = published(tmp_path, 0.1)
    with an_api(tmp_path) as api:
        delivery = api.call("GET", "/api/subscriptions/billing/deliveries/0-1").json
        ids = DeliveryIds((tmp_path / "hub.key").read_bytes())
        assert delivery["id"] == ids.text_of(lane, 0, 1)
        assert api.call("DELETE", "/api/subscriptions/billing").status == 204
        key = lane
        gone = SavedLane(
            lane=key,
            state="deleted",
            body=encode(LaneState()),
            low_water=a_mark(0),
            open_items=0,
            next_due=None,
            tally=LaneTally(),
        )
        store = SqliteDeliveryStore(tmp_path)
        store.save(Flush(lanes=[gone]))
        store.close()
        until(lambda: api.call("GET", f"/api/deliveries/{delivery['id']}").json["state"] == "deleted")
        told = api.call("GET", f"/api/deliveries/{delivery['id']}").json
        assert (told["cause"], told["message"]) == (
            "subscription-deleted",
            "the subscription was deleted before it was delivered",
        )


def test_a_trace_shows_what_the_subscription_wants_to_be_kept(tmp_path: Path) -> None:
    lane = published(tmp_path, 0.1, 0.1, tracking=Tracking.DISCARDED)
    key = lane
    state = LaneState(a_mark(2))
    done = SavedLane(
        lane=key, state="active", body=encode(state), low_water=a_mark(2), open_items=0, next_due=None, tally=LaneTally()
    )
    facts = [
        Attempted(key, a_position(1), "delivered", 2, Instant(1), 204, 1.0, ""),
        Attempted(key, a_position(2), "dead", 3, Instant(2), 500, 1.0, "status-500"),
    ]
    store = SqliteDeliveryStore(tmp_path)
    store.save(Flush(lanes=[done], attempts=facts))
    store.close()
    with an_api(tmp_path) as api:
        traces = [api.call("GET", f"/api/topics/orders/events/0-{n}/trace").json["deliveries"][0]["delivery"] for n in (1, 2)]
        assert [(one["state"], len(one["history"])) for one in traces] == [("delivered", 0), ("dead", 1)]
