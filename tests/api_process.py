"""The api part alone, in a thread of the test's process, spoken to over real HTTP."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import uvloop

from tests.hub import Answer, free_port
from tidings import config
from tidings.app import run_api
from tidings.observe.part_status import PartStatus

CLOUDEVENT = {"specversion": "1.0", "id": "1", "source": "/shop", "type": "order.created", "data": {"total": 5}}


@dataclass(frozen=True)
class ApiProcess:
    """Where it listens, and where its data is."""

    port: int
    data: Path

    def call(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None, **query: object
    ) -> Answer:
        """One request on a connection of its own. A body that is not bytes is sent as JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        raw = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        sent = {"content-type": "application/json", **(headers or {})} if raw is not None else dict(headers or {})
        try:
            connection.request(method, path + (f"?{urlencode(query)}" if query else ""), raw, sent)
            response = connection.getresponse()
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def publish(self, topic: str, body: Any, content_type: str = "application/json", **headers: str) -> Answer:
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.call("POST", f"/api/topics/{topic}/events", body, {"content-type": content_type, **more})

    def lines(self, topic: str, **query: object) -> list[Any]:
        answer = self.call("GET", f"/api/topics/{topic}/events", **query)
        assert answer.status == 200, answer.body
        return [json.loads(line) for line in answer.body.splitlines()]

    def events(self, topic: str) -> list[Any]:
        return [line["event"] for line in self.lines(topic) if "event" in line]


@contextmanager
def an_api(data: Path, **flags: Any) -> Iterator[ApiProcess]:
    """A running api part; `flags` are sections of settings. Stopped in order at the end."""
    port = free_port()
    server = {"port": port, **flags.pop("server", {})}
    # The hub's own topic would stand beside those of the test.
    push = {"dead_letter_events": False, **flags.pop("push", {})}
    settings = config.load(environ={}, flags={"data": str(data), "server": server, "push": push, **flags})
    running = _Running(settings)
    running.start()
    try:
        yield ApiProcess(port, data)
    finally:
        running.stop()


class _Running(threading.Thread):
    def __init__(self, settings: config.Settings) -> None:
        super().__init__(daemon=True)
        self._settings = settings
        self._board = PartStatus(settings.data / "run", "api")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending: asyncio.Event | None = None
        self._failure: BaseException | None = None

    def run(self) -> None:
        try:
            uvloop.run(self._main())
        except BaseException as error:
            self._failure = error

    async def _main(self) -> None:
        self._loop, self._ending = asyncio.get_running_loop(), asyncio.Event()
        await run_api(self._settings, self._ending, self._board)

    def start(self) -> None:
        super().start()
        while not self._board.face().ready:
            if not self.is_alive():
                raise self._failure or RuntimeError("the api ended")
            time.sleep(0.005)

    def stop(self) -> None:
        assert self._loop is not None and self._ending is not None
        if self.is_alive():
            self._loop.call_soon_threadsafe(self._ending.set)
        self.join(30)
        if self._failure is not None:
            raise self._failure
