"""How one subscription is delivered: its own wishes over the hub's defaults. The whole delivery policy will grow here."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tidings.config import PushSettings
from tidings.delivery.push.credentials import Access
from tidings.delivery.push.decide import RetryPolicy
from tidings.registry.credentials import is_sealed
from tidings.registry.model import ContentMode, Push

_NOT_THEIRS = frozenset(
    ("connection", "content-length", "expect", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade")
)
"""Headers that say how a message is framed or where it goes; a subscription cannot set them."""


class Policy(msgspec.Struct, frozen=True):
    """Everything an attempt for one subscription needs to know. A change holds for the next attempt."""

    url: str
    mode: ContentMode
    headers: Mapping[str, str]
    inflight: int
    attempt_timeout: float
    retry: RetryPolicy
    access: Access | None = None


def _is_theirs(name: str, value: str) -> bool:
    """Sealed headers are opened only when they are sent; see `credentials`."""
    return name.lower() not in _NOT_THEIRS and not is_sealed(value)


def policy_of(push: Push, defaults: PushSettings) -> Policy:
    """The subscription's own values where it has some, else the hub's."""
    return Policy(
        url=push.url,
        mode=push.mode,
        headers={name.lower(): value for name, value in push.headers.items() if _is_theirs(name, value)},
        inflight=max(1, defaults.inflight if push.inflight is None else push.inflight),
        attempt_timeout=defaults.attempt_timeout if push.attempt_timeout is None else push.attempt_timeout,
        retry=RetryPolicy(
            tries=max(1, defaults.tries if push.tries is None else push.tries),
            first=defaults.retry_first if push.retry_first is None else push.retry_first,
            longest=defaults.retry_max if push.retry_max is None else push.retry_max,
        ),
    )
