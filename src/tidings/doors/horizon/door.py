"""The Horizon door as a value: its paths, its namespaces, its port."""

from __future__ import annotations

import re

from tidings.doors.door import Door
from tidings.doors.horizon.names import PREFIX

WEEK = 7 * 86400.0
"""Events are kept for seven days (HOR-149)."""

_WHOLE = re.compile(r"(?:/[^/]+)?/horizon/(?:sse|events|publish|rover|schemas)(?:/|$)")
"""Paths of the Horizon documents that begin with the door's prefix anyway, or with an environment before it."""

_KEYS = ("/.well-known/jwks.json", "/.well-known/openid-configuration")
"""Where those who get the hub's tokens look for its keys."""


def claimed(path: str) -> str | None:
    """The path as Horizon's documents write it, for a path of the common port."""
    if path.startswith("/api/"):
        return None
    if path in _KEYS or ("/horizon/" in path and _WHOLE.match(path)):
        return path
    return path[8:] if path.startswith("/horizon/") else None


def is_ours(namespace: str) -> bool:
    """Whether a namespace of topics and subscriptions is this door's."""
    return namespace.startswith(PREFIX)


DOOR = Door(
    name="horizon",
    title="Horizon",
    prefix="/horizon",
    application="tidings.doors.horizon.application",
    claims=claimed,
    owns=is_ours,
    divided=PREFIX,
    changed_by="apply the Rover or EventSpecification that asks for it",
    longest_retention=WEEK,
    format="tidings.doors.horizon.format",
    port=lambda settings: settings.horizon.port,
)
