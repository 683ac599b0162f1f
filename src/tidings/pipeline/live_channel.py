"""What the driver and the task that follows the log say to each other, over one TCP connection.

    task   → driver   Hello(token, pid)    once
    task   → driver   Ask()                the end of the next step is fixed: which routes govern it?
    driver → task     Go(change)           these, as a change of what the task has
    task   → driver   Found(rows)          the step is routed; the driver writes it, in order, before it answers the next Ask
    driver → task     Stop()               at any time

A connection that breaks ends the task. The driver writes the lanes, so it alone decides what counts.
"""

from __future__ import annotations

import select
import socket
import struct
from typing import TypeAlias

import msgspec

from tidings.pipeline.routed_rows import RoutedRange
from tidings.pipeline.routes import RouteChange

_LENGTH = struct.Struct("<I")
_LARGEST = 1 << 30


class Hello(msgspec.Struct, tag="hello", array_like=True, frozen=True):
    token: bytes
    pid: int


class Ask(msgspec.Struct, tag="ask", array_like=True, frozen=True):
    pass


class StepFound(msgspec.Struct, tag="found", array_like=True, frozen=True):
    routed: RoutedRange


class Go(msgspec.Struct, tag="go", array_like=True, frozen=True):
    change: RouteChange | None


class StopFollowing(msgspec.Struct, tag="stop", array_like=True, frozen=True):
    pass


Message: TypeAlias = Hello | Ask | StepFound | Go | StopFollowing

_encode = msgspec.msgpack.Encoder().encode
_decoder: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(Message)


class ChannelClosed(Exception):
    """The other side is gone."""


class LiveChannel:
    """Messages over a connected socket. One thread."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._kept = bytearray()

    def send(self, message: Message) -> None:
        """Raises ChannelClosed."""
        raw = _encode(message)
        try:
            self._socket.sendall(_LENGTH.pack(len(raw)) + raw)
        except OSError as error:
            raise ChannelClosed from error

    def receive(self, timeout: float | None = None) -> Message | None:
        """The next message; None when none came within `timeout` seconds. Raises ChannelClosed."""
        while True:
            message = self._taken()
            if message is not None:
                return message
            if timeout is not None and not select.select([self._socket], [], [], timeout)[0]:
                return None
            try:
                piece = self._socket.recv(1 << 18)
            except OSError as error:
                raise ChannelClosed from error
            if not piece:
                raise ChannelClosed
            self._kept += piece

    def _taken(self) -> Message | None:
        if len(self._kept) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._kept)
        if length > _LARGEST:
            raise ChannelClosed
        end = _LENGTH.size + length
        if len(self._kept) < end:
            return None
        raw = bytes(self._kept[_LENGTH.size : end])
        del self._kept[:end]
        try:
            return _decoder.decode(raw)
        except msgspec.MsgspecError as error:
            raise ChannelClosed from error

    def close(self) -> None:
        self._socket.close()
