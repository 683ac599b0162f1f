"""Further addresses of feeds, chosen by their topics: the address itself, and `/events` below it (FEED-27)."""

from __future__ import annotations

from tidings.registry.model import Snapshot

EVENTS = "/events"


class Aliases:
    """All aliases, gathered once for each state of the registry."""

    def __init__(self) -> None:
        self._snapshot: Snapshot | None = None
        self._topics: dict[str, str] = {}

    def meaning(self, snapshot: Snapshot, path: str) -> tuple[str, bool] | None:
        """The feed that an address means, and whether its events are meant; None when it is no alias."""
        if snapshot is not self._snapshot:
            self._snapshot = snapshot
            self._topics = {alias: str(name) for name, topic in snapshot.topics.items() for alias in topic.feed.aliases}
        if not self._topics:
            return None
        path = path.rstrip("/")
        found = self._topics.get(path)
        if found is None and path.endswith(EVENTS):
            found = self._topics.get(path[: -len(EVENTS)].rstrip("/"))
            return None if found is None else (found, True)
        return None if found is None else (found, False)
