"""A server on a port of its own in a thread, and raw sockets to it: what the HTTP tests speak through."""

from __future__ import annotations

import asyncio
import json
import select
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import uvicorn

from tidings.server.http_protocol import WireLimits, limited

LIMITS = WireLimits(head_bytes=65536, head_time=10, body_time=30, answer_time=30, keep_alive=75, connections=1000)


@contextmanager
def a_server(app: Any, limits: WireLimits = LIMITS) -> Iterator[int]:
    """The port of a running server for `app`."""
    config = uvicorn.Config(app, http=limited(limits), ws="none", lifespan="off", log_config=None, access_log=False)
    server = uvicorn.Server(config)
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.005)
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(10)


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def connect(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=80)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def read_answer(connection: socket.socket) -> Answer:
    """The next answer on this connection; needs a content-length."""
    stream = connection.makefile("rb", buffering=0)
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = stream.read(1)
        if not byte:
            raise EOFError(head)
        head += byte
    first, *lines = head.decode("latin-1").strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, value in (line.split(":", 1) for line in lines)}
    body = b""
    while len(body) < int(headers.get("content-length", "0")):
        body += stream.read(int(headers["content-length"]) - len(body)) or b""
    return Answer(int(first.split(" ")[1]), headers, body)


def exchange(port: int, raw: bytes) -> Answer:
    """Send raw bytes on a new connection and read one answer."""
    with connect(port) as connection:
        connection.sendall(raw)
        return read_answer(connection)


def wait_until_gone(connection: socket.socket) -> None:
    """Until the other end has let go of the connection, without reading from it."""
    look = select.poll()
    look.register(connection, select.POLLHUP | select.POLLERR)
    assert look.poll(20_000)
