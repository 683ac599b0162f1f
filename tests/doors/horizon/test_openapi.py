"""The Horizon door keeps what its OpenAPI document promises, whatever is sent: no 5xx, no undocumented answer."""

from __future__ import annotations

from pathlib import Path

from tests.api_process import ApiProcess, an_api
from tests.doors.horizon.worlds import Door, a_horizon_event, a_rover, a_specification, a_stream, an_entry, exposing
from tests.doors.sse.worlds import streaming
from tests.hub import free_port
from tests.openapi import conforms, operations
from tidings.doors.horizon.names import subscription_id

CONSUMER = "hub--team--billing"
EXAMPLES = 12


def test_every_answer_is_one_that_the_document_promises(tmp_path: Path) -> None:
    port = free_port()
    with streaming(tmp_path, horizon={"port": port}, sse={"idle": "50ms"}) as world:
        door = Door(world.api)
        subscribing = a_rover("billing", subscriptions=[a_stream(), an_entry("calls.v1")])
        types = ("orders.v1", "calls.v1")
        door.applied(exposing(), exposing("calls.v1", "caller"), *map(a_specification, types), subscribing)
        assert door.publish(a_horizon_event()).status == 201
        ids = [subscription_id("playground", one, CONSUMER) for one in types]
        world.route(world.lane(ids[0]))
        message = door.call("GET", f"/horizon/v1/playground/subscriptions/{ids[0]}/events").json["items"][0]["id"]
        known = {
            "environment": ["playground"],
            "subscription": ids,
            **{name: list(types) for name in ("event_type", "eventType", "type")},
            "message": [message],
            "name": ["billing", "orders-v1", "shop"],
            "team": ["hub--team"],
            "ticket": [],
        }
        document = ApiProcess(port, tmp_path).call("GET", "/openapi.json").json
        conforms(document, f"http://127.0.0.1:{port}", known, EXAMPLES)


def test_the_document_tells_where_its_paths_stand(tmp_path: Path) -> None:
    port = free_port()
    with an_api(tmp_path, horizon={"port": port}) as api:
        own, common = (
            ApiProcess(port, tmp_path).call("GET", "/openapi.json").json,
            api.call("GET", "/horizon/openapi.json").json,
        )
        assert "servers" not in own and list(operations(own)) == list(operations(common))
        assert common["servers"] == [{"url": "/horizon"}]
        for path, method in operations(common):
            if method == "get" and "{" not in path:
                prefix = common["paths"][path].get("servers", common["servers"])[0]["url"].rstrip("/")
                assert api.call("GET", prefix + path).status == 200
                assert ApiProcess(port, tmp_path).call("GET", path).status == 200
