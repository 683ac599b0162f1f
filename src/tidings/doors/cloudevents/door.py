"""The CloudEvents door as a value: its paths, its namespace, its port."""

from __future__ import annotations

from tidings.doors.cloudevents.names import PREFIX, is_ours
from tidings.doors.door import Door


def claimed(path: str) -> str | None:
    """The path below the door's prefix, for a path of the common port."""
    return path[len(PREFIX) :] if path.startswith(f"{PREFIX}/") else None


DOOR = Door(
    name="cloudevents",
    title="CloudEvents",
    prefix=PREFIX,
    application="tidings.doors.cloudevents.application",
    claims=claimed,
    owns=is_ours,
    changed_by=f"use {PREFIX}/subscriptions/{{id}}",
    port=lambda settings: settings.cloudevents.port,
)
