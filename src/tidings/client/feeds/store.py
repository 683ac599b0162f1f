"""Where cursors are kept: beside the consumer's own data, saved in the same transaction (FCL-05, FCL-08)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from tidings.errors import CursorMoved


@dataclass(frozen=True, slots=True)
class StoredCursor:
    """How far one partition was read. `finished`: it is closed and read to its end, and not asked again while it is closed."""

    cursor: str
    finished: bool = False


class Store(Protocol):
    """Keeps the cursors of any number of feeds. Used by one client at a time, in one thread."""

    def load(self, feed: str) -> Mapping[str, StoredCursor]:
        """What is kept of a feed, by partition; nothing when it was never read."""

    def transaction(self) -> AbstractContextManager[Any]:
        """One transaction of the consumer's database, given to the handler. Commits when left in order, else rolls back."""

    def save(self, tx: Any, feed: str, partition: str, row: StoredCursor, before: StoredCursor | None) -> None:
        """Save within `tx`. Raises CursorMoved when the row is no longer `before`: somebody else reads this feed too."""


class MemoryStore:
    """Keeps cursors as long as the process lives, for tests and for who begins anew each time. The transaction is a list."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], StoredCursor] = {}
        self.taken: list[Any] = []
        """What handlers left in their transactions."""

    def load(self, feed: str) -> Mapping[str, StoredCursor]:
        return {partition: row for (of, partition), row in self._rows.items() if of == feed}

    @contextmanager
    def transaction(self) -> Iterator[list[Any]]:
        rows, tx = dict(self._rows), list[Any]()
        try:
            yield tx
        except BaseException:
            self._rows = rows
            raise
        self.taken += tx

    def save(self, tx: Any, feed: str, partition: str, row: StoredCursor, before: StoredCursor | None) -> None:
        if self._rows.get((feed, partition)) != before:
            raise moved(feed, partition)
        self._rows[feed, partition] = row


def moved(feed: str, partition: str) -> CursorMoved:
    return CursorMoved("another reader saves the cursors of this feed to the same place", at=f"{feed}, partition {partition}")
