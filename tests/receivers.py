"""A receiving endpoint for tests: a small real HTTP server on loopback that answers by a script and keeps what arrived.

It runs in a thread of its own, so that plain and asynchronous tests use it alike.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import TypeAlias

from tests.polling import PATIENCE


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request as it came; names of headers in lower case. `names` has a name as often as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    at: float
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """What the receiver does with one request.

    `hang`: never answer. `drop`: close without an answer. `pace`: seconds between the bytes of the body.
    `endless`: go on sending body bytes as long as somebody reads. `delay`: wait before answering.
    """

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    delay: float = 0.0
    hang: bool = False
    drop: bool = False
    pace: float = 0.0
    endless: bool = False


Script: TypeAlias = Sequence[Answer] | Callable[[Arrival], Answer]


class Receiver:
    """Listens from `with` to its end. A list of answers is used up in order, its last one again and again.

    A `port` is named by who expects it to be free.
    """

    def __init__(
        self, script: Script = (Answer(),), host: str = "127.0.0.1", tls: ssl.SSLContext | None = None, port: int = 0
    ) -> None:
        self.script = script
        self.port = port
        self.arrivals: list[Arrival] = []
        self.sent_bytes = 0
        self.connections = 0
        self._host = host
        self._tls = tls
        self._changed = threading.Condition()
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="receiver", daemon=True)

    def __enter__(self) -> Receiver:
        self._thread.start()
        self._started.wait()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://{self._host}:{self.port}/in"

    def wait_for(self, count: int, timeout: float = 20.0) -> list[Arrival]:
        """The arrivals, once there are `count` of them. Raises TimeoutError."""
        return self.wait_until(lambda arrivals: len(arrivals) >= count, timeout)

    def wait_until(self, enough: Callable[[list[Arrival]], bool], timeout: float = 20.0) -> list[Arrival]:
        """The arrivals, once there are enough of them. Raises TimeoutError."""
        with self._changed:
            if not self._changed.wait_for(lambda: enough(self.arrivals), PATIENCE * timeout):
                raise TimeoutError(f"only {len(self.arrivals)} requests arrived")
            return list(self.arrivals)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._open: set[asyncio.Task[None]] = set()
        server = await asyncio.start_server(self._connected, self._host, self.port, ssl=self._tls)
        self.port = int(server.sockets[0].getsockname()[1])
        self._started.set()
        await self._stop.wait()
        server.close()
        for task in self._open:
            task.cancel()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            while await self._one(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._open.discard(task)
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ", 2)
        lines = [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in head[1:] if line)]
        headers = dict(lines)
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        answer = self._note(Arrival(method, path, headers, body, time.monotonic(), tuple(name for name, _ in lines)))
        if answer.drop:
            return False
        await asyncio.sleep(3600 if answer.hang else answer.delay)
        return await self._answer(answer, writer)

    def _note(self, arrival: Arrival) -> Answer:
        with self._changed:
            self.arrivals.append(arrival)
            self._changed.notify_all()
            if callable(self.script):
                return self.script(arrival)
            return self.script[min(len(self.arrivals), len(self.script)) - 1]

    async def _answer(self, answer: Answer, writer: asyncio.StreamWriter) -> bool:
        length = {} if answer.endless else {"content-length": str(len(answer.body))}
        lines = [f"HTTP/1.1 {answer.status} Answer", *(f"{n}: {v}" for n, v in (length | answer.headers).items())]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        if not answer.pace:
            writer.write(answer.body)
            self.sent_bytes += len(answer.body)
        await writer.drain()
        for n in range(len(answer.body) if answer.pace else 0):
            writer.write(answer.body[n : n + 1])
            await writer.drain()
            await asyncio.sleep(answer.pace)
        while answer.endless:
            writer.write(bytes(65536))
            await writer.drain()
            self.sent_bytes += 65536
        return True
