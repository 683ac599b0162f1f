"""The feeds door as a value: its paths, and the aliases that topics give their feeds."""

from __future__ import annotations

from collections.abc import Callable

from tidings.doors.door import Door
from tidings.doors.feeds.aliases import Aliases
from tidings.registry.model import Snapshot

PREFIX = "/feeds"


def claimed(path: str) -> str | None:
    """Everything at and below `/feeds`; the documents write it so too."""
    return path if path.startswith(PREFIX) and path[len(PREFIX) : len(PREFIX) + 1] in ("", "/") else None


def _aliases() -> Callable[[Snapshot, str], bool]:
    aliases = Aliases()
    return lambda snapshot, path: aliases.meaning(snapshot, path) is not None


DOOR = Door(
    name="feeds",
    title="Feeds",
    prefix=PREFIX,
    application="tidings.doors.feeds.application",
    claims=claimed,
    aliases=_aliases,
)
