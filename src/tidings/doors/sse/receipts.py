"""Which of the written entries the client surely has. Pure.

    written ──▶ acknowledged by the client's machine ──▶ certain
                                                     └──▶ comes again: the connection broke while something was unread

A machine acknowledges what its process has not read yet. A process that dies with something unread breaks the connection, one
that has read everything closes it. So an entry is certain when the connection has outlived it for a while (`SURE`), when more was
acknowledged after it than lies unread in a client's machine as a rule (`BEHIND`), or when the client closes.
"""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple

from tidings.log.position import Position

SURE = 1.0
"""Seconds."""

BEHIND = 64 << 10
"""Bytes."""

SOON, LATER = 0.001, 0.1
"""Seconds between two looks, while the client reads and while it does not: no machine says by itself that it acknowledged."""


class _Written(NamedTuple):
    position: Position
    end: int
    at: float


class Receipts:
    """The entries of one stream that were written and are not certain yet, oldest first. Times are those of the event loop."""

    def __init__(self) -> None:
        self._uncertain: deque[_Written] = deque()
        self._bytes = 0
        self._pause = SOON

    def __len__(self) -> int:
        return len(self._uncertain)

    def wrote(self, position: Position, size: int, now: float) -> None:
        """An entry was written, as so many bytes."""
        self._bytes += size
        self._uncertain.append(_Written(position, self._bytes, now))

    def commented(self, size: int) -> None:
        """Something else was written."""
        self._bytes += size

    def certain(self, unacknowledged: int, now: float, *, ended: bool = False) -> list[Position]:
        """The entries that have become certain. `ended`: nothing more will be known, what is acknowledged counts."""
        acknowledged = self._bytes - unacknowledged
        outlived = -math.inf if self._stalled(acknowledged, now) else now - SURE
        found = []
        while self._uncertain:
            position, end, at = self._uncertain[0]
            if end > acknowledged or not (ended or acknowledged - end >= BEHIND or at <= outlived):
                break
            found.append(position)
            self._uncertain.popleft()
        self._pause = SOON if found else min(LATER, 2 * self._pause)
        return found

    def look_in(self, now: float) -> float:
        """Seconds after which another look may find something."""
        if not self._uncertain:
            return math.inf
        _, end, at = self._uncertain[0]
        due = at + SURE - now
        return self._pause if due <= 0 or self._bytes - end >= BEHIND else due

    def _stalled(self, acknowledged: int, now: float) -> bool:
        """Whether the client has not read for a while: then time says nothing about what its machine took."""
        if not self._uncertain or self._uncertain[0].at > now - SURE:
            return False
        first = next((one for one in self._uncertain if one.end > acknowledged), None)
        return first is not None and first.at <= now - SURE
