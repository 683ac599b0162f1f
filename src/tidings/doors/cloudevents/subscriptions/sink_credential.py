"""The member `sinkcredential`: tokens that are written and never shown (SUB-07, SUB-14)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidings.clock import Instant, rfc3339
from tidings.doors.cloudevents.subscriptions.faults import Faults
from tidings.doors.deliveries.start_points import instant_of
from tidings.errors import Malformed, shortened
from tidings.registry.credentials import Placement, TokenCredential
from tidings.registry.model import Push, Subscription

ACCESS, REFRESH = "ACCESSTOKEN", "REFRESHTOKEN"

_AT = "/sinkcredential"


def credential_in(
    raw: object, placement: str, sink: str, standing: Subscription | None, faults: Faults
) -> TokenCredential | None:
    """The credential that is meant. A secret that is left out is the one that stands, as long as the sink is the same."""
    if raw is None:
        return None
    members = faults.object(raw, _AT)
    kind = members.get("credentialtype")
    if kind not in (ACCESS, REFRESH):
        expected = f"expected {ACCESS} or {REFRESH}"
        faults.add(f"{_AT}/credentialtype", f"{expected}: webhooks take tokens only, found {shortened(kind)}")
        return None
    held = _held(standing, sink)
    token = _secret(members, "accesstoken", held.token if held else None, faults)
    refresh = _secret(members, "refreshtoken", held.refresh if held else None, faults) if kind == REFRESH else ""
    endpoint = faults.text(members.get("refreshtokenendpoint"), f"{_AT}/refreshtokenendpoint") if kind == REFRESH else ""
    return TokenCredential(
        token=token or "",
        token_type=_type(members.get("accesstokentype"), faults),
        expires=_expiry(members.get("accesstokenexpiresutc"), faults),
        refresh=refresh or "",
        refresh_at=endpoint or "",
        placement=Placement(placement),
    )


def credential_shown(credential: object) -> dict[str, Any] | None:
    """The credential without its secrets."""
    if not isinstance(credential, TokenCredential):
        return None
    shown: dict[str, Any] = {
        "credentialtype": REFRESH if credential.refresh else ACCESS,
        "accesstokentype": credential.token_type,
    }
    if credential.expires is not None:
        shown["accesstokenexpiresutc"] = rfc3339(credential.expires)
    if credential.refresh_at:
        shown["refreshtokenendpoint"] = credential.refresh_at
    return shown


def _held(standing: Subscription | None, sink: str) -> TokenCredential | None:
    """What stands, for the same address: whoever changes the address must know the secret (HER-127 says why)."""
    push = standing.delivery if standing is not None else None
    if not isinstance(push, Push) or push.url != sink or not isinstance(push.credential, TokenCredential):
        return None
    return push.credential


def _secret(members: Mapping[str, Any], name: str, held: str | None, faults: Faults) -> str | None:
    if members.get(name) is None and held:
        return held
    if members.get(name) is None:
        faults.add(
            f"{_AT}/{name}", "it is required; a credential that stands keeps its secret only at the same sink", "missing"
        )
        return None
    return faults.text(members[name], f"{_AT}/{name}")


def _type(raw: object, faults: Faults) -> str:
    if raw is None:
        return "Bearer"
    text = faults.text(raw, f"{_AT}/accesstokentype") or "Bearer"
    return "Bearer" if text.lower() == "bearer" else text


def _expiry(raw: object, faults: Faults) -> Instant | None:
    if raw is None:
        return None
    text = faults.text(raw, f"{_AT}/accesstokenexpiresutc")
    try:
        return None if text is None else instant_of(text)
    except (Malformed, OverflowError) as error:
        faults.add(f"{_AT}/accesstokenexpiresutc", str(error))
        return None
