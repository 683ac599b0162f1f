"""A subscription that was made at one door is seen through the native API, with its preset, dialect and format, and changed
only where it was made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.api_process import ApiProcess, an_api
from tests.doors.cloudevents.worlds import CONSENT
from tests.doors.hermes.worlds import HermesDoor
from tests.doors.horizon.worlds import Door as HorizonDoor
from tests.doors.horizon.worlds import a_rover, a_specification, an_entry, exposing
from tests.doors.vng.worlds import VngDoor
from tests.receivers import Receiver
from tidings.doors.all_doors import DOORS
from tidings.doors.horizon.names import subscription_id

HORIZON_TRIGGER = {"advancedSelectionFilter": {"eq": {"field": "$.a", "value": 1}}}


@dataclass(frozen=True)
class Made:
    """Where a subscription stands, how it was asked for, and how its own door ends it."""

    name: str
    preset: str
    dialect: str
    format: str
    end: Callable[[ApiProcess], int]


def by_horizon(api: ApiProcess, sink: str) -> Made:
    entry = an_entry(callback=sink, trigger=HORIZON_TRIGGER)
    HorizonDoor(api).applied(exposing(), a_specification(), a_rover("bill", subscriptions=[entry]))
    name = f"horizon/playground:{subscription_id('playground', 'orders.v1', 'hub--team--bill')}"

    def end(api: ApiProcess) -> int:
        HorizonDoor(api).applied(a_rover("bill", subscriptions=[]))
        return 200

    return Made(name, "horizon", "horizon", "horizon", end)


def by_hermes(api: ApiProcess, sink: str) -> Made:
    door = HermesDoor(api)
    topic = door.topic()
    filters = [{"type": "jsonpath", "path": "$.a", "matcher": "x"}]
    path = door.subscribe("mine", topic, endpoint=sink, filters=filters)
    return Made(f"hermes/{topic}:mine", "hermes", "hermes", "hermes", lambda api: HermesDoor(api).call("DELETE", path).status)


def by_vng(api: ApiProcess, sink: str) -> Made:
    door = VngDoor(api)
    door.domain()
    made = door.subscribed(sink, filters=[{"exact": {"type": "x"}}])
    path = f"/subscriptions/{made['id']}"
    return Made(f"vng:{made['id']}", "vng", "vng", "vng", lambda api: VngDoor(api).call("DELETE", path).status)


def by_cloudevents(api: ApiProcess, sink: str) -> Made:
    wanted = {"sink": sink, "protocol": "HTTP", "filters": [{"exact": {"type": "x"}}]}
    made = api.call("POST", "/cloudevents/subscriptions", wanted).json
    path = f"/cloudevents/subscriptions/{made['id']}"
    dialect = "cloudevents"
    return Made(f"cloudevents:{made['id']}", "cloudevents", dialect, "cloudevents", lambda api: api.call("DELETE", path).status)


MAKERS = {"horizon": by_horizon, "hermes": by_hermes, "vng": by_vng, "cloudevents": by_cloudevents}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    with an_api(tmp_path_factory.mktemp("everywhere")) as api:
        yield api


@pytest.fixture(scope="module")
def sink() -> Iterator[Receiver]:
    with Receiver([CONSENT]) as receiver:
        yield receiver


def test_every_door_that_owns_subscriptions_is_tried() -> None:
    assert {door.name for door in DOORS if door.changed_by} == set(MAKERS)


@pytest.mark.parametrize("door", sorted(MAKERS))
def test_it_is_seen_by_all_and_changed_where_it_was_made(api: ApiProcess, sink: Receiver, door: str) -> None:
    made = MAKERS[door](api, sink.url)
    path = f"/api/subscriptions/{made.name}"
    seen = api.call("GET", path).json
    assert (seen["door"], seen["format"], seen["delivery"]["preset"]) == (door, made.format, made.preset)
    assert seen["filter"]["dialect"] == made.dialect
    assert made.name in [each["name"] for each in api.call("GET", "/api/subscriptions").json["subscriptions"]]

    replaced: dict[str, Any] = {"namespace": "default", "delivery": {"kind": "pull"}}
    attempts = (("PUT", path, replaced), ("PATCH", path, {"description": "mine"}), ("DELETE", path, None))
    for method, where, body in (*attempts, ("PUT", f"{path}/policy", {"preset": "default"})):
        refused = api.call(method, where, body)
        assert (refused.status, refused.json["code"]) == (409, "conflict"), (method, refused.body)
    assert api.call("GET", path).json == seen
    elsewhere = made.name.partition(":")[2]
    for path_of_another in (f"/vng/subscriptions/{elsewhere}", f"/cloudevents/subscriptions/{elsewhere}"):
        if not path_of_another.startswith(f"/{door}/"):
            assert api.call("DELETE", path_of_another).status == 404
    assert made.end(api) in (200, 204)
    assert api.call("GET", path).status == 404


def test_a_subscription_of_the_hub_names_its_format_and_no_door(api: ApiProcess, sink: Receiver) -> None:
    api.call("PUT", "/api/topics/orders", {})
    api.call("PUT", "/api/subscriptions/own", {"topic": "orders", "to": sink.url})
    seen = api.call("GET", "/api/subscriptions/own").json
    assert (seen["door"], seen["format"]) == (None, "cloudevents")
    shown = {name: seen[name] for name in ("topics", "delivery", "format", "door")}
    assert api.call("PUT", "/api/subscriptions/own", shown).status == 200, "what is only shown may be put back"
    assert api.call("PATCH", "/api/subscriptions/own", {"description": "mine"}).status == 200
