"""The connection to the owner of a lane: what it sent and nobody has looked at yet, and whether more will come."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import cast

from tidings.delivery.sse.socket_protocol import (
    TAKEN,
    Begun,
    StreamEnd,
    StreamEntry,
    StreamOptions,
    Unpacker,
    told_in,
    wish_message,
)


class OwnerConnection(asyncio.Protocol):
    """One stream as its owner sends it. `changed` is called whenever there is something new to know.

    How much arrives before it is taken is bounded by the owner.
    """

    def __init__(self, wish: StreamOptions, changed: Callable[[], None]) -> None:
        self._wish = wish
        self._changed = changed
        self._unpacker = Unpacker()
        self._transport: asyncio.Transport | None = None
        self.arrived: deque[StreamEntry] = deque()
        self.ending: StreamEnd | None = None
        self.begun = False
        self.lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are none by name.
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(wish_message(self._wish))

    def data_received(self, data: bytes) -> None:
        for message in self._unpacker.messages(data):
            told = told_in(message)
            match told:
                case Begun():
                    self.begun = True
                case StreamEnd():
                    self.ending = told
                case StreamEntry():
                    self.arrived.append(told)
        self._changed()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        self._changed()

    def taken(self, count: int) -> None:
        """The client has the next entries."""
        if self._transport is not None and not self.lost:
            self._transport.write(TAKEN * count)

    def finish(self) -> None:
        """Nothing more will be taken: the owner closes when it knows of everything that was."""
        if self._transport is not None and not self.lost:
            self._transport.write_eof()

    def close(self) -> None:
        """What was not taken comes again."""
        if self._transport is not None:
            self._transport.close()
