"""The registry as a process holds it in memory: asked for every publish and delivery, read again only after a change."""

from __future__ import annotations

import threading

from tidings.events.avro.payloads import SchemaBook
from tidings.registry.model import Snapshot
from tidings.registry.port import RegistryReader


class CurrentRegistry:
    """The newest snapshot this process knows. Safe to share between threads.

    The api process calls `refresh` right after its own change, before it answers, so that what was answered holds for the
    next publish. Other processes call it when they wake up: it costs one small select when nothing has changed.
    """

    def __init__(self, reader: RegistryReader) -> None:
        self._reader = reader
        self._lock = threading.Lock()
        self._held = reader.snapshot()
        self.schemas = SchemaBook()
        """The Avro schemas that events of topics in force were written by."""
        self._learn()

    @property
    def snapshot(self) -> Snapshot:
        """What is in force, as of the last refresh. No I/O, no lock."""
        return self._held

    def refresh(self) -> bool:
        """Read the registry again if its revision has changed; whether it had."""
        with self._lock:
            if self._reader.revision() == self._held.revision:
                return False
            self._held = self._reader.snapshot()
            self._learn()
            return True

    def _learn(self) -> None:
        avro = [topic.avro for topic in self._held.topics.values() if topic.avro is not None]
        self.schemas.add(one.schema for payload in avro for one in payload.versions)
