"""Which topic takes an event of a type: the topic of that name, or the one whose label `types` lists it.

Topics of other doors are left out: their events come in by their own doors.
"""

from __future__ import annotations

from tidings.doors.api_parts import ApiParts
from tidings.doors.door import owner_of
from tidings.errors import Conflict, Malformed, NotFound
from tidings.events.model import Event
from tidings.registry.model import DEFAULT_NAMESPACE, Name, Snapshot
from tidings.registry.rules import parse_name

LABEL = "types"


class EventTypes:
    """The topics by the types that they declare, made anew when the registry changes."""

    def __init__(self, parts: ApiParts) -> None:
        self._parts = parts
        self._default = parts.settings.cloudevents.default_topic
        self._snapshot: Snapshot | None = None
        self._found: dict[str, list[Name]] = {}
        self._largest = 0

    def topic_of(self, events: list[Event]) -> str:
        """The one topic of these events. Raises NotFound, Conflict where several declare a type, Malformed for several topics."""
        topics = {self._topic(str(type)) for type in {event.attributes["type"] for event in events}}
        if len(topics) > 1:
            found = ", ".join(sorted(map(str, topics)))
            raise Malformed("the events of a batch belong to several topics", found=found, expected="one batch for each topic")
        return str(topics.pop()) if topics else ""

    def _topic(self, type: str) -> Name:
        self._look_again()
        topics = self._found.get(type, [])
        if len(topics) > 1:
            raise Conflict(f"several topics declare the type {type[:200]}", found=", ".join(map(str, topics)))
        if topics:
            return topics[0]
        if self._default:
            return parse_name(self._default)
        raise NotFound(
            f"no topic declares the type {type[:200]}",
            expected=f"a topic of this name or with it in the label {LABEL}, or the setting cloudevents.default_topic",
        )

    def largest_event(self) -> int:
        """The bytes of the largest event that some topic takes."""
        self._look_again()
        return self._largest

    def _look_again(self) -> None:
        snapshot = self._parts.snapshot
        if snapshot is not self._snapshot:
            usual = self._parts.settings.topics.max_event_bytes
            self._largest = max((topic.max_event_bytes or 0 for topic in snapshot.topics.values()), default=0)
            self._largest = max(self._largest, usual)
            self._snapshot, self._found = snapshot, self._declared(snapshot)

    def _declared(self, snapshot: Snapshot) -> dict[str, list[Name]]:
        found: dict[str, list[Name]] = {}
        for name, topic in sorted(snapshot.topics.items()):
            if owner_of(self._parts.doors, name) is not None:
                continue
            named = {name.name} if name.namespace == DEFAULT_NAMESPACE else set()
            for type in named | set(topic.labels.get(LABEL, "").replace(",", " ").split()):
                found.setdefault(type, []).append(name)
        return found
