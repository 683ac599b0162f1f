"""The VNG door as a value: its paths, its namespaces, its port."""

from __future__ import annotations

from tidings.doors.door import Door
from tidings.doors.vng.names import NAMESPACE

PREFIX = "/vng"


def claimed(path: str) -> str | None:
    """The path as VNG's documents write it, for a path of the common port."""
    if path == PREFIX or path.startswith(f"{PREFIX}/"):
        return path[len(PREFIX) :] or "/"
    return None


def is_ours(namespace: str) -> bool:
    """Whether a namespace of topics and subscriptions is this door's."""
    return namespace == NAMESPACE or namespace.startswith(f"{NAMESPACE}/")


DOOR = Door(
    name="vng",
    title="VNG",
    prefix=PREFIX,
    application="tidings.doors.vng.application",
    claims=claimed,
    owns=is_ours,
    changed_by="change the domain or subscription at the VNG door, below /vng",
    port=lambda settings: settings.vng.port,
    format="tidings.doors.vng.format",
)
