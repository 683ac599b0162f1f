"""Order within a lane: entries of one line go out one after the other, each when the outcome of the one before is durable.

`strict` has one line for all, `key` one per partition key, `parallel` none. Pure: who may go follows from who entered and left.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from tidings.delivery.push.lane import Item
from tidings.registry.wishes import Ordering

ONE_LINE = 0


class Gate:
    """The lines of one lane. The first of a line may be sent; the rest waits. Redeliveries are not held up by it."""

    __slots__ = ("_lines", "_ordering")

    def __init__(self, ordering: Ordering = Ordering.PARALLEL, items: Iterable[Item] = ()) -> None:
        self._ordering = ordering
        self._lines: dict[int, deque[Item]] = {}
        for item in items:
            self.enter(item)

    @property
    def ordered(self) -> bool:
        return self._ordering is not Ordering.PARALLEL

    def enter(self, item: Item) -> bool:
        """The item joins the end of its line. Items come in the order of their offsets. Whether it may go at once."""
        if not self.ordered or item.again:
            return True
        line = self._lines.setdefault(self._line_of(item), deque())
        line.append(item)
        return line[0] is item

    def may_go(self, item: Item) -> bool:
        """Whether nothing of its line is before it. An item that never entered is held up by nothing."""
        if not self.ordered or item.again:
            return True
        line = self._lines.get(self._line_of(item))
        return not line or line[0] is item

    def leave(self, item: Item) -> Item | None:
        """The item is final, and that is durable. The one whose turn it is now, if that is news."""
        key = self._line_of(item)
        line = self._lines.get(key)
        if not line:
            return None
        first = line[0] is item
        if first:
            line.popleft()
        elif item in line:
            line.remove(item)
        if not line:
            del self._lines[key]
            return None
        return line[0] if first else None

    def _line_of(self, item: Item) -> int:
        return item.key if self._ordering is Ordering.KEY else ONE_LINE
