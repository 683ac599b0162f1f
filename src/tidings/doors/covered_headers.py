"""Headers that a subscription sends: secret ones are shown as ***, and *** put back stands for the value that is there."""

from __future__ import annotations

from collections.abc import Mapping

from tidings.access.secret_box import Box, Unreadable
from tidings.access.secrets import COVER, covered
from tidings.errors import Malformed
from tidings.registry.model import Push, Subscription
from tidings.registry.rules.credentials import secret_place


def headers_shown(subscription: Subscription, box: Box) -> dict[str, str]:
    """The headers of a push as their owner may see them: those that carry secrets are covered."""
    if not isinstance(subscription.delivery, Push):
        return {}
    owner = f"subscription/{subscription.name}"
    headers = subscription.delivery.headers
    return covered({name: _opened(box, secret_place(owner, "headers", name.lower()), text) for name, text in headers.items()})


def _opened(box: Box, place: str, text: str) -> str:
    try:
        return box.open(place, text)
    except Unreadable:
        return COVER


def uncovered(headers: Mapping[str, str], url: str, standing: Subscription | None, at: str) -> dict[str, str]:
    """The headers with what *** stands for. It stands for nothing at another address: that could be anybody's.

    Raises Malformed, with a place below `at`.
    """
    push = standing.delivery if standing is not None else None
    held = push.headers if isinstance(push, Push) and push.url == url else {}
    for name, value in headers.items():
        if value == COVER and name not in held:
            known = isinstance(push, Push) and name in push.headers
            fault = "a new address needs the value again" if known else "there is no value yet that *** could stand for"
            raise Malformed(fault, at=f"{at}.{name[:50]}", expected="the value, or null to leave the header out")
    return {name: held[name] if value == COVER else value for name, value in headers.items()}
