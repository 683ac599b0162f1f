"""One answer as it comes in: which events may be applied with which cursor, and what the whole of it meant. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tidings.client.feeds.lines import Batch, Checkpoint, Event


class Page:
    """Collects events until a checkpoint of their partition. What comes after the last one is dropped and read again (FCL-06)."""

    def __init__(self, asked: Mapping[str, str]) -> None:
        self._asked = dict(asked)
        self._cursors = dict(asked)
        self._pending: dict[str, list[Event]] = {id: [] for id in asked}
        self._ready: dict[str, tuple[int, str]] = {}
        self._seen: set[str] = set()
        self._busy: set[str] = set()
        self.events = 0
        """How many there were, also of types that nobody asked for."""

    def take(self, said: list[Event | Checkpoint], max_batch: int) -> Iterator[Batch]:
        """The batches that this part of the answer filled: up to a checkpoint, and of about `max_batch` events.

        Some servers send a checkpoint after every event. What is smaller waits for more of the answer, or for `rest`.
        """
        ready = self._ready
        for one in said:
            pending = self._pending.get(one.partition)
            if pending is None:
                continue
            if isinstance(one, Event):
                pending.append(one)
                continue
            self._seen.add(one.partition)
            ready[one.partition] = (len(pending), one.cursor)
            if len(pending) >= max_batch:
                yield self._cut(one.partition, *ready.pop(one.partition))

    def rest(self) -> Iterator[Batch]:
        """The batches that have their checkpoint and are not full."""
        ready, self._ready = self._ready, {}
        for id, (count, cursor) in ready.items():
            yield self._cut(id, count, cursor)

    def _cut(self, id: str, count: int, cursor: str) -> Batch:
        pending = self._pending[id]
        batch = Batch(id, cursor, tuple(pending[:count]))
        del pending[:count]
        if count:
            self.events += count
            self._busy.add(id)
        self._cursors[id] = cursor
        return batch

    @property
    def said_anything(self) -> bool:
        """Whether there was a checkpoint at all."""
        return bool(self._seen)

    def at_the_end(self) -> list[str]:
        """The partitions of which the answer said that there is nothing more now: no events and the same cursor."""
        return [
            id
            for id, cursor in self._asked.items()
            if id in self._seen and id not in self._busy and not self._pending[id] and self._cursors[id] == cursor
        ]

    @property
    def is_at_the_end(self) -> bool:
        """Whether that holds for everything that was asked; what was not mentioned at all has nothing to say either."""
        return self.said_anything and self._is_quiet({*self.at_the_end()})

    @property
    def is_silent(self) -> bool:
        """Whether there was neither event nor checkpoint, which only servers of an older kind do."""
        return not self.said_anything and self._is_quiet(set())

    def _is_quiet(self, at_the_end: set[str]) -> bool:
        unmentioned = {id for id in self._asked if id not in self._seen and not self._pending[id]}
        return at_the_end | unmentioned == set(self._asked)
