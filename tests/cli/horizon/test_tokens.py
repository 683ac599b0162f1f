"""`tidings listen --horizon` tells whether a request carries a good token of the hub."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.api_process import an_api
from tidings.access.gateway_tokens import GatewayKey
from tidings.access.key_file import KeyFile
from tidings.access.secret_box import Box, hub_key
from tidings.cli.horizon.tokens import TokenCheck
from tidings.cli.hub_command import Hub
from tidings.clock import SystemClock
from tidings.errors import Rejected


def test_tokens_are_checked_with_the_keys_of_the_hub(tmp_path: Path) -> None:
    with an_api(tmp_path, gateway={"issuer": "https://hub.example"}) as api:
        hub = Hub(f"http://127.0.0.1:{api.port}")
        check = TokenCheck(hub, "hub--team--bill", ["hub--team--shop"])
        claims = {"clientId": "eventstore", "publisherId": "hub--team--shop", "subscriberId": "hub--team--bill"}
        key = GatewayKey(KeyFile(tmp_path, Box(hub_key(tmp_path)), 600, SystemClock()))

        def verdict(**changed: object) -> str:
            token = key.signed({"iss": "https://hub.example", "exp": 4_000_000_000, **claims, **changed})
            return check.verdict({"authorization": f"Bearer {token}"})

        assert verdict() == "token right"
        assert verdict(subscriberId="other") == "token wrong: the token is for another subscriber"
        assert verdict(iss="https://elsewhere") == "token wrong: the issuer is not trusted"
        assert check.verdict({}).startswith("token wrong")
        with pytest.raises(Rejected):
            TokenCheck(hub, "hub--team--bill", [])


def test_the_issuer_may_depend_on_the_environment(tmp_path: Path) -> None:
    with an_api(tmp_path, gateway={"issuer": "https://hub.example/{environment}"}, horizon={"environment": "prod"}) as api:
        hub = Hub(f"http://127.0.0.1:{api.port}")
        claims = {"clientId": "eventstore", "publisherId": "p", "subscriberId": "s", "exp": 4_000_000_000}
        key = GatewayKey(KeyFile(tmp_path, Box(hub_key(tmp_path)), 600, SystemClock()))
        token = {"authorization": f"Bearer {key.signed({'iss': 'https://hub.example/play', **claims})}"}
        assert TokenCheck(hub, "s", ["p"], "play").verdict(token) == "token right"
        assert TokenCheck(hub, "s", ["p"], "prod").verdict(token) == "token wrong: the issuer is not trusted"
        assert TokenCheck(hub, "s", ["p"]).verdict(token) == "token wrong: the issuer is not trusted"
