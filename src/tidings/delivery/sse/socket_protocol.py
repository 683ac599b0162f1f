"""What is said between a door and the owner of a lane, over a Unix socket: one connection is one stream.

The door begins with its wish. When the lane is its own it is told so; entries follow, then at most one ending. For every entry that
its client took, the door sends one byte; what was not taken when the connection ends comes again. Messages are a length and
msgpack; entries have a fixed head.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import msgspec

from tidings.clock import Instant
from tidings.log.position import LaneNumber, Position
from tidings.log.wake import room

TAKEN = b"."
LONGEST_WISH = 1024

_LENGTH = struct.Struct(">I")
_ENTRY = struct.Struct(">cqqq36s")
_ENDING = struct.Struct(">c")
_IS_ENTRY, _IS_ENDING, _IS_BEGUN = b"e", b"x", b"b"

BEGUN = _LENGTH.pack(1) + _IS_BEGUN
"""What a door is told when the lane is its own."""


class StreamEnd(StrEnum):
    """Why a stream ends."""

    REPLACED = "replaced"
    TERMINATED = "terminated"
    GONE = "gone"
    NOT_STREAMED = "not-streamed"
    TOO_MANY = "too-many"
    BARRED = "barred"
    STOPPED = "stopped"


class Begun(NamedTuple):
    """The lane is the door's own from now on."""


class StreamOptions(msgspec.Struct, frozen=True, array_like=True):
    """Which lane's stream. `after`: first everything after this place once more, whatever became of it (HOR-143).

    `number`: how many at the most, 0 for any number. `terminate`: end the lane's stream instead of opening one.
    `seen`: the client has everything up to this place, whatever is known of it here.
    """

    lane: LaneNumber
    after: Position | None = None
    number: int = 0
    terminate: bool = False
    seen: Position | None = None


class StreamEntry(NamedTuple):
    """One entry on its way: its delivery id, its place, when it was published, and head and data as they are stored."""

    id: str
    position: Position
    published: Instant
    head: bytes
    data: bytes | None


class _Stored(msgspec.Struct, frozen=True, array_like=True, gc=False):
    head: bytes
    data: bytes | None


_stored = msgspec.msgpack.Decoder(_Stored).decode


def socket_path(folder: Path, worker: int) -> Path:
    """Where worker `worker` takes streams."""
    return room(folder, "streams") / f"{worker}.sock"


def wish_message(wish: StreamOptions) -> bytes:
    """A wish as it is sent."""
    body = msgspec.msgpack.encode(wish)
    return _LENGTH.pack(len(body)) + body


def entry_message(delivery_id: str, position: Position, published: Instant, stored: bytes) -> bytes:
    """An entry as it is sent; `stored` is its head and data, packed already."""
    head = _ENTRY.pack(_IS_ENTRY, *position, published, delivery_id.encode())
    return b"%b%b%b" % (_LENGTH.pack(len(head) + len(stored)), head, stored)


def ending_message(ending: StreamEnd) -> bytes:
    """An ending as it is sent."""
    body = _ENDING.pack(_IS_ENDING) + ending.encode()
    return _LENGTH.pack(len(body)) + body


class Unpacker:
    """Cuts what arrives into messages."""

    def __init__(self) -> None:
        self._held = bytearray()

    def messages(self, data: bytes) -> Iterator[bytes]:
        """The messages that are whole now."""
        self._held += data
        while len(self._held) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._held)
            end = _LENGTH.size + length
            if len(self._held) < end:
                return
            message = bytes(self._held[_LENGTH.size : end])
            del self._held[:end]
            yield message

    @property
    def waiting(self) -> int:
        """Bytes of a message that is not whole yet."""
        return len(self._held)

    def rest(self) -> bytes:
        """What came after the messages that were cut."""
        rest = bytes(self._held)
        self._held.clear()
        return rest


def wish_in(message: bytes) -> StreamOptions:
    """The wish of a message. Raises msgspec.MsgspecError."""
    return msgspec.msgpack.decode(message, type=StreamOptions)


def told_in(message: bytes) -> Begun | StreamEntry | StreamEnd:
    """What the owner of a lane says."""
    if message[:1] == _IS_BEGUN:
        return Begun()
    if message[:1] == _IS_ENDING:
        return StreamEnd(message[1:].decode())
    _, partition, offset, published, delivery_id = _ENTRY.unpack_from(message)
    stored = _stored(memoryview(message)[_ENTRY.size :])
    return StreamEntry(delivery_id.decode(), Position(partition, offset), Instant(published), stored.head, stored.data)
