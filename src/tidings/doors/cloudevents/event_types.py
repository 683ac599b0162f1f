"""Which topic takes an event of a type: the topic of that name, or the one whose label `types` lists it.

Topics of other doors are left out: their events come in by their own doors.
"""

from __future__ import annotations

import msgspec

from tidings.doors.api_parts import ApiParts
from tidings.doors.door import owner_of
from tidings.errors import Conflict, Malformed, NotFound
from tidings.events.limits import Limits
from tidings.events.model import Event
from tidings.registry.model import DEFAULT_NAMESPACE, Snapshot

LABEL = "types"


class EventTypes:
    """The topics by the types that they declare, made anew when the registry changes."""

    def __init__(self, parts: ApiParts) -> None:
        self._parts = parts
        settings = parts.settings
        self._default = settings.cloudevents.default_topic
        self._usual = settings.topics.max_event_bytes
        ingest = settings.ingest
        self._limits = Limits(batch_events=ingest.batch_events, batch_bytes=ingest.batch_bytes).keeping(
            ingest.transport_headers
        )
        self._snapshot: Snapshot | None = None
        self._found: dict[str, list[str]] = {}

    @property
    def limits(self) -> Limits:
        """What some topic would take: which one it is, is known only once the events are read."""
        snapshot = self._parts.snapshot
        if snapshot is not self._snapshot:
            own = (topic.max_event_bytes for topic in snapshot.topics.values() if topic.max_event_bytes is not None)
            self._limits = msgspec.structs.replace(self._limits, max_event_bytes=max(self._usual, *own, 0))
            self._snapshot, self._found = snapshot, self._declared(snapshot)
        return self._limits

    def topic_of(self, events: list[Event]) -> str:
        """The one topic of these events. Raises NotFound, Conflict where several declare a type, Malformed for several topics."""
        if len(events) == 1:
            return self._topic(str(events[0].attributes["type"]))
        topics = {self._topic(type) for type in {str(event.attributes["type"]) for event in events}}
        if len(topics) > 1:
            found = ", ".join(sorted(topics))
            raise Malformed("the events of a batch belong to several topics", found=found, expected="one batch for each topic")
        return topics.pop()

    def _topic(self, type: str) -> str:
        topics = self._found.get(type, ())
        if len(topics) == 1:
            return topics[0]
        if topics:
            raise Conflict(f"several topics declare the type {type[:200]}", found=", ".join(topics))
        if self._default:
            return self._default
        raise NotFound(
            f"no topic declares the type {type[:200]}",
            expected=f"a topic of this name or with it in the label {LABEL}, or the setting cloudevents.default_topic",
        )

    def _declared(self, snapshot: Snapshot) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name, topic in sorted(snapshot.topics.items()):
            if owner_of(self._parts.doors, name) is not None:
                continue
            named = {name.name} if name.namespace == DEFAULT_NAMESPACE else set()
            for type in named | set(topic.labels.get(LABEL, "").replace(",", " ").split()):
                found.setdefault(type, []).append(str(name))
        return found
