"""The six checks of a callback's token: each claim forged once (HOR-T50)."""

from __future__ import annotations

import time
from typing import Any

import jwt
import pytest

from tests.access.signing import OneKey
from tidings.access.gateway_tokens import GatewayKey
from tidings.client import ExpectedToken, NotVerified, verify_horizon_token

KEY, OTHER = GatewayKey(OneKey()), GatewayKey(OneKey())
EXPECTED = ExpectedToken(issuers=["https://hub"], publishers=["hub--team--shop"], subscriber="hub--team--bill", zone="AWS")


def a_token(key: GatewayKey = KEY, **claims: Any) -> str:
    plain = {
        "iss": "https://hub",
        "exp": time.time() + 300,
        "clientId": "eventstore",
        "requestPath": "/horizon-aws/callback/v1",
        "publisherId": "hub--team--shop",
        "subscriberId": "hub--team--bill",
    }
    return f"Bearer {key.signed({**plain, **claims})}"


def test_a_token_of_the_hub_is_accepted() -> None:
    assert verify_horizon_token(a_token(), KEY.jwks, EXPECTED)["publisherId"] == "hub--team--shop"
    assert verify_horizon_token(a_token(clientId="gateway"), KEY.jwks, EXPECTED)


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"iss": "https://elsewhere"}, "issuer"),
        ({"exp": time.time() - 3600}, "expired"),
        ({"exp": "never"}, "expired"),
        ({"clientId": "somebody"}, "client"),
        ({"requestPath": "/horizon-caas/callback/v1"}, "path"),
        ({"publisherId": "hub--team--other"}, "publisher"),
        ({"subscriberId": "hub--team--other"}, "subscriber"),
    ],
)
def test_each_claim_is_checked(claims: dict[str, Any], why: str) -> None:
    with pytest.raises(NotVerified, match=why):
        verify_horizon_token(a_token(**claims), KEY.jwks, EXPECTED)


@pytest.mark.parametrize("token", [None, "", "Bearer x", "Bearer a.b.c", a_token(OTHER)])
def test_what_the_issuer_did_not_sign_is_refused(token: str | None) -> None:
    with pytest.raises(NotVerified):
        verify_horizon_token(token, KEY.jwks, EXPECTED)


def test_a_token_without_or_with_a_shared_secret_is_refused() -> None:
    kid = KEY.jwks["keys"][0]["kid"]
    forged = jwt.encode({"iss": "https://hub"}, "s" * 64, "HS256", headers={"kid": kid})
    bare = jwt.encode({"iss": "https://hub"}, None, "none", headers={"kid": kid})
    for token in (forged, bare):
        with pytest.raises(NotVerified):
            verify_horizon_token(f"Bearer {token}", KEY.jwks, EXPECTED)
