"""`sinkCredential`: a token of the subscriber's, with a refresh token or without (VNG-21, VNG-65, VNG-72)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidings.clock import rfc3339
from tidings.doors.deliveries.start_points import instant_of
from tidings.doors.vng.documents.members import DocumentReader
from tidings.errors import EventFault, Malformed
from tidings.events.attribute_rules import rule_of
from tidings.registry.credentials import Credential, Placement, TokenCredential
from tidings.registry.model import Push

ACCESS, REFRESH = "ACCESSTOKEN", "REFRESHTOKEN"
_BEARER = "bearer"

_time_problem = rule_of("time")


def credential_from(
    raw: Mapping[str, Any], held: Push | None, placement: Placement, faults: list[EventFault]
) -> TokenCredential | None:
    """The credential of these members. `held`: what is in force for the same sink, whose secrets stay where they are left out."""
    reader = DocumentReader(raw, faults, "sinkCredential")
    kind = raw.get("credentialType")
    if kind not in (ACCESS, REFRESH):
        code = "required" if kind is None else "invalid"
        reader.fault("credentialType", code, f"expected {ACCESS} or {REFRESH}; other credentials are not sent to webhooks")
        return None
    kept = held.credential if held is not None and isinstance(held.credential, TokenCredential) else None
    token = reader.text("accessToken", required=kept is None)
    expires = reader.text("accessTokenExpiresUtc", required=True)
    word = reader.text("accessTokenType") or _BEARER
    refresh = endpoint = ""
    if kind == REFRESH:
        refresh = reader.text("refreshToken", required=kept is None or not kept.refresh)
        endpoint = reader.address("refreshTokenEndpoint", required=True)
    moment = None
    if expires and (problem := _time_problem(expires)) is not None:
        reader.fault("accessTokenExpiresUtc", "invalid", problem[1])
    elif expires:
        try:
            moment = instant_of(expires)
        except Malformed as error:
            reader.fault("accessTokenExpiresUtc", "invalid", str(error))
    if kept is not None:
        token, refresh = token or kept.token, refresh or (kept.refresh if kind == REFRESH else "")
    if not token or (kind == REFRESH and not (refresh and endpoint)):
        return None
    return TokenCredential(
        token=token,
        token_type="Bearer" if word.lower() == _BEARER else word,
        expires=moment,
        refresh=refresh,
        refresh_at=endpoint,
        placement=placement,
    )


def shown_credential(credential: Credential | None) -> dict[str, Any] | None:
    """The credential without its secrets."""
    if not isinstance(credential, TokenCredential):
        return None
    word = credential.token_type
    shown: dict[str, Any] = {
        "credentialType": REFRESH if credential.refresh else ACCESS,
        "accessTokenType": _BEARER if word == "Bearer" else word,
    }
    if credential.expires is not None:
        shown["accessTokenExpiresUtc"] = rfc3339(credential.expires)
    if credential.refresh:
        shown["refreshTokenEndpoint"] = credential.refresh_at
    return shown
