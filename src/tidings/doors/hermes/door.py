"""The Hermes door as a value: its paths, its namespaces, its port."""

from __future__ import annotations

from tidings.doors.door import Door
from tidings.doors.hermes.names import is_ours

PREFIX = "/hermes"


def claimed(path: str) -> str | None:
    """The path as Hermes' documents write it, for a path of the common port."""
    if path == PREFIX:
        return "/"
    return path[len(PREFIX) :] if path.startswith(f"{PREFIX}/") else None


DOOR = Door(
    name="hermes",
    title="Hermes",
    prefix=PREFIX,
    application="tidings.doors.hermes.application",
    claims=claimed,
    owns=is_ours,
    changed_by="use the paths of Hermes' management below /hermes, such as PUT /hermes/topics/{topic}",
    format="tidings.doors.hermes.format",
    port=lambda settings: settings.hermes.port,
)
