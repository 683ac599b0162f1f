"""Callbacks as Horizon makes them: body, headers, the hub's token, and references instead of payloads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jwt
from msgspec import structs

from tests.delivery.worlds import World, a_pushed_lane, final, in_world, quick_settings
from tests.receivers import Arrival
from tidings import config
from tidings.access.gateway_tokens import GatewayKey
from tidings.access.key_file import KeyFile
from tidings.access.secret_box import Box, sealing_key
from tidings.access.secrets import hub_key
from tidings.clock import SystemClock
from tidings.doors.horizon.format import lane_format
from tidings.doors.horizon.layout import HorizonLayout, PayloadForm
from tidings.ids import DeliveryIds
from tidings.registry.credentials import GatewayToken

LAYOUT = HorizonLayout(
    environment="default", subscription="e2004914", publisher="ec--shop", subscriber="ec--billing", zone="AWS"
)
REFERRING = HorizonLayout(
    environment="default", subscription="s1", publisher="p", subscriber="c", zone="aws", payload=PayloadForm.DATAREF
)
KEPT = {"x-foo": "1", "x-pubsub-subscriber-id": "somebody else", "content-type": "application/xml"}


def delivered(folder: Path, layout: HorizonLayout, **event: Any) -> tuple[Arrival, str]:
    """What a callback gets of one event, and its message id."""
    seen: list[tuple[Arrival, str]] = []

    async def scenario(world: World) -> None:
        async with a_pushed_lane(world, preset="horizon", layout=layout.kept()) as (lane, receiver):
            (position,) = await world.publish(1, lane, transport=KEPT, **event)
            await final(world, lane, position.offset)
            ids = DeliveryIds(hub_key(world.settings.data).reveal())
            seen.append((receiver.arrivals[0], ids.text_of(lane, *position)))

    in_world(folder, scenario)
    return seen[0]


def test_a_callback_gets_horizons_body_and_headers(tmp_path: Path) -> None:
    arrival, _ = delivered(tmp_path, LAYOUT, subject="left out")
    assert json.loads(arrival.body) == {
        "id": "1",
        "type": "order.created",
        "source": "/orders",
        "specversion": "1.0",
        "datacontenttype": "application/json",
        "data": {"n": 1},
    }
    expected = {
        "x-foo": "1",
        "content-type": "application/json",
        "accept": "application/json",
        "accept-charset": "UTF-8",
        "x-event-id": "1",
        "x-event-type": "order.created",
        "x-pubsub-publisher-id": "ec--shop",
        "x-pubsub-subscriber-id": "ec--billing",
        "x-subscription-id": "e2004914",
    }
    assert {name: arrival.headers.get(name) for name in expected} == expected


def test_the_hubs_token_names_zone_publisher_and_subscriber(tmp_path: Path) -> None:
    arrival, _ = delivered(tmp_path, LAYOUT)
    settings = quick_settings(tmp_path)
    keys = jwt.PyJWKSet.from_dict(
        GatewayKey(KeyFile(tmp_path, Box(sealing_key(settings.access, tmp_path)), 600, SystemClock())).jwks
    )
    claims = jwt.decode(arrival.headers["authorization"].removeprefix("Bearer "), keys.keys[0].key, ["ES256", "RS256"])
    wanted = {"requestPath": "/horizon-aws/callback/v1", "publisherId": "ec--shop", "subscriberId": "ec--billing"}
    assert claims.items() >= {**wanted, "clientId": "eventstore", "iss": "tidings"}.items()


def test_the_hubs_token_is_for_the_environment_as_the_hub_calls_it(tmp_path: Path) -> None:
    settings = config.load(environ={"TIDINGS_HORIZON_ENVIRONMENT": "prod"})

    def environment(layout: HorizonLayout) -> str:
        token = lane_format(layout.kept(), settings).credential
        assert isinstance(token, GatewayToken)
        return token.environment

    assert environment(LAYOUT) == "prod"
    assert environment(structs.replace(LAYOUT, environment="play")) == "play"


def test_environments_share_no_probe_and_nothing_that_differs_is_shared(tmp_path: Path) -> None:
    settings = config.load(environ={})
    plain, parsed, referring = (
        lane_format(one.kept(), settings) for one in (LAYOUT, structs.replace(LAYOUT, filtered=True), REFERRING)
    )
    assert len({plain.key, parsed.key, referring.key}) == 3
    other = lane_format(structs.replace(LAYOUT, environment="play", subscription="s9").kept(), settings)
    assert other.key == plain.key and other.group != plain.group


def test_a_reference_stands_for_the_payload(tmp_path: Path) -> None:
    arrival, message = delivered(tmp_path, REFERRING, dataref="http://past.the.filter/")
    body = json.loads(arrival.body)
    assert (body["dataref"], "data" in body) == (f"http://127.0.0.1:8484/horizon/v1/default/data/s1/{message}", False)
