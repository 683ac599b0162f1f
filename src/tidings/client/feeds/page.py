"""One answer as it comes in: which events may be applied with which cursor, and what the whole of it meant. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tidings.client.feeds.lines import Batch, Checkpoint, FeedEvent
from tidings.errors import FeedUnreadable


class AnswerPage:
    """Collects events until a checkpoint of their partition. What comes after the last one is dropped and read again (FCL-06)."""

    def __init__(self, asked: Mapping[str, str]) -> None:
        self._asked = dict(asked)
        self._cursors = dict(asked)
        self._pending: dict[str, list[FeedEvent]] = {id: [] for id in asked}
        self._ready: dict[str, list[tuple[int, str]]] = {}
        self._seen: set[str] = set()
        self._busy: set[str] = set()
        self.events = 0
        """How many there were, also of types that nobody asked for."""

    def take(self, said: list[FeedEvent | Checkpoint], max_batch: int) -> Iterator[Batch]:
        """The batches that this part of the answer filled: up to a checkpoint, and of about `max_batch` events.

        Some servers send a checkpoint after every event. What is smaller waits for more of the answer, or for `rest`.
        """
        ready = self._ready
        for one in said:
            pending = self._pending.get(one.partition)
            if pending is None:
                continue
            if isinstance(one, FeedEvent):
                pending.append(one)
                continue
            self._seen.add(one.partition)
            ready.setdefault(one.partition, []).append((len(pending), one.cursor))
            if len(pending) >= max_batch:
                yield self._cut(one.partition, ready.pop(one.partition))

    def rest(self) -> Iterator[Batch]:
        """The batches that have their checkpoint and are not full."""
        ready, self._ready = self._ready, {}
        for id, checkpoints in ready.items():
            yield self._cut(id, checkpoints)

    def _cut(self, id: str, checkpoints: list[tuple[int, str]]) -> Batch:
        pending, (count, cursor) = self._pending[id], checkpoints[-1]
        batch = Batch(id, cursor, tuple(pending[:count]), since=self._cursors[id], checkpoints=tuple(checkpoints))
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

    def unmentioned(self) -> list[str]:
        """The partitions of which the answer had neither event nor checkpoint. Of a closed one, this is the end."""
        return [id for id in self._asked if id not in self._seen and not self._pending[id]]

    @property
    def is_at_the_end(self) -> bool:
        """Whether that holds for everything that was asked; what was not mentioned at all has nothing to say either."""
        return self.said_anything and {*self.at_the_end(), *self.unmentioned()} == set(self._asked)

    @property
    def is_silent(self) -> bool:
        """Whether there was neither event nor checkpoint, which only servers of an older kind do."""
        return not self.said_anything and len(self.unmentioned()) == len(self._asked)

    @property
    def has_lost_events(self) -> bool:
        """Whether events came and not one checkpoint: they would come again for ever."""
        return not self.said_anything and not self.is_silent


def without_cursor() -> FeedUnreadable:
    """What is wrong with such an answer."""
    return FeedUnreadable("events come without any cursor, so that reading cannot go on", expected="a cursor in every answer")
