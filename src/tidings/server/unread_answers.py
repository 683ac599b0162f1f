"""Whether a client reads its answers. What is not read waits in memory and holds a task: that must end some day. Pure."""

from __future__ import annotations

import sys

import msgspec

LEAST = 16 << 10
"""Bytes that a client must read within its time, unless fewer are left. Fewer would let it dribble for ever."""


class Unread(msgspec.Struct, frozen=True, gc=False):
    """Bytes of answers that were waiting at a look, and since when the client has read none to speak of."""

    waiting: int
    since: float

    @classmethod
    def at(cls, now: float) -> Unread:
        """Just now the client read, however much there was."""
        return cls(sys.maxsize, now)

    def looked(self, waiting: int, now: float) -> Unread:
        """After another look, which found this many bytes."""
        if waiting == 0 or waiting <= self.waiting - LEAST:
            return Unread(waiting, now)
        return Unread(max(waiting, self.waiting), self.since)
