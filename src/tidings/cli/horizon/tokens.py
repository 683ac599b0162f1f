"""Checks the hub's token in requests to `tidings listen`, as a Horizon consumer has to (HOR-165)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from tidings.cli.hub_command import Hub
from tidings.client.horizon import ExpectedToken, verify_horizon_token
from tidings.client.webhooks import NotVerified
from tidings.errors import Rejected


class TokenCheck:
    """Checks tokens with the hub's public keys. Asks the hub for them once."""

    def __init__(self, hub: Hub, subscriber: str, publishers: list[str], environment: str | None = None) -> None:
        if not publishers:
            raise Rejected("whose events are trusted is not said", at="--publisher", expected="the provider's client id")
        where = "" if environment is None else f"/horizon/v1/{quote(environment, safe='')}"
        told = hub.client.get(f"{where}/.well-known/openid-configuration")
        self._keys: Mapping[str, Any] = hub.client.get("/.well-known/jwks.json")
        self._expected = ExpectedToken(issuers=[told["issuer"]], publishers=publishers, subscriber=subscriber)

    def verdict(self, headers: Mapping[str, str]) -> str:
        """What to print about the token of a request."""
        try:
            verify_horizon_token(headers.get("authorization", ""), self._keys, self._expected)
        except NotVerified as error:
            return f"token wrong: {error}"
        return "token right"
