"""The door on a port of its own, where its paths stand at the root; its keys; its OpenAPI document."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.api_process import ApiProcess, an_api
from tests.doors.horizon.worlds import Door, a_horizon_event, a_specification, exposing
from tests.hub import free_port
from tidings import config
from tidings.errors import Misconfigured
from tidings.server.own_ports import own_ports


def test_paths_stand_at_the_root_of_a_port_of_its_own(tmp_path: Path) -> None:
    port = free_port()
    with an_api(tmp_path, horizon={"port": port}) as api:
        own = ApiProcess(port, tmp_path)
        Door(api).applied(exposing(), a_specification())
        assert own.call("HEAD", "/v1/playground/events").status == 204
        assert own.call("POST", "/v1/playground/events", a_horizon_event()).status == 201
        assert own.call("POST", "/playground/horizon/events/v1", a_horizon_event()).status == 201
        assert own.call("GET", "/api/v1/circuit-breakers").json == {"items": []}
        assert own.call("GET", "/api/topics").status == 404
        assert own.call("GET", "/.well-known/jwks.json").json["keys"]


def test_addresses_of_the_common_port_hold_on_the_other_one_too(tmp_path: Path) -> None:
    port = free_port()
    with an_api(tmp_path, horizon={"port": port}) as api:
        own = ApiProcess(port, tmp_path)
        Door(own).applied(exposing(), a_specification())
        assert Door(own).publish(a_horizon_event()).status == 201
        for path in ("/horizon/v1/playground/event-types", "/horizon/rover/v1/playground/Rover", "/horizon/openapi.json"):
            assert (own.call("GET", path).status, api.call("GET", path).status) == (200, 200)
        assert own.call("GET", "/feeds").status == 404


def test_the_port_of_the_hub_itself_is_refused(tmp_path: Path) -> None:
    port = free_port()
    with pytest.raises(Misconfigured, match="common port"), an_api(tmp_path, horizon={"port": port}, server={"port": port}):
        pass


@pytest.mark.parametrize("port", [99_999, -1])
def test_a_port_that_cannot_be_is_refused_in_words(port: int) -> None:
    with pytest.raises(Misconfigured, match=r"horizon\.port is .*ports are 1 to 65535"):
        own_ports(config.load(flags={"horizon": {"port": port}}, environ={}))


def test_keys_are_found_by_the_issuer(tmp_path: Path) -> None:
    with an_api(tmp_path, gateway={"issuer": "https://hub.example/horizon"}) as api:
        for path in ("/.well-known/openid-configuration", "/horizon/.well-known/openid-configuration"):
            told = api.call("GET", path).json
            assert told["issuer"] == "https://hub.example/horizon"
            assert told["jwks_uri"] == "https://hub.example/horizon/.well-known/jwks.json"
        assert api.call("GET", "/horizon/.well-known/jwks.json").json == api.call("GET", "/.well-known/jwks.json").json


def test_each_environment_may_have_an_issuer_of_its_own(tmp_path: Path) -> None:
    issuer = "https://hub.example/horizon/v1/{environment}"
    with an_api(tmp_path, gateway={"issuer": issuer}, horizon={"environment": "prod"}) as api:
        for path, environment in (("", "prod"), ("/horizon/v1/play", "play"), ("/horizon/v1/default", "prod")):
            told = api.call("GET", f"{path}/.well-known/openid-configuration").json
            assert told["issuer"] == f"https://hub.example/horizon/v1/{environment}"
            assert told["jwks_uri"] == f"http://127.0.0.1:{api.port}/.well-known/jwks.json"


def test_the_openapi_document_holds_every_path(tmp_path: Path) -> None:
    with an_api(tmp_path) as api:
        paths = api.call("GET", "/horizon/openapi.json").json["paths"]
        assert {"/v1/{environment}/events", "/horizon/rover/v1/{environment}/apply"} <= paths.keys()
        assert set(paths["/v1/{environment}/events"]) == {"post", "head"}


def test_hor_165_after_a_change_of_the_hubs_key_the_former_one_is_listed(tmp_path: Path) -> None:
    found = []
    for key in ("a" * 32, "b" * 32):
        with an_api(tmp_path, access={"key": key}) as api:
            found.append([one["kid"] for one in api.call("GET", "/.well-known/jwks.json").json["keys"]])
    assert len(found[0]) == 1 and found[1][1:] == found[0] and found[1][0] != found[0][0]
