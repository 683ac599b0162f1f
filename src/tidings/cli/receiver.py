"""A small receiving endpoint: takes every request, reports it, and answers by a script. For `listen` and the demo."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tidings.errors import PortInUse


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """One request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    def event(self) -> dict[str, Any]:
        """The event in it as one JSON document, whether it came binary or structured; otherwise the plain body."""
        parsed = _json_or_text(self.body)
        if isinstance(parsed, dict) and "specversion" in parsed:
            return parsed
        attributes = {name.removeprefix("ce-"): value for name, value in self.headers.items() if name.startswith("ce-")}
        return {**attributes, "data": parsed}


def _json_or_text(body: bytes) -> Any:
    try:
        return json.loads(body) if body else None
    except (ValueError, RecursionError):
        return body.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Script:
    """How to answer: the statuses in turn, the last one repeated; `retry_after` with each that is not 2xx."""

    statuses: tuple[int, ...] = (HTTPStatus.NO_CONTENT,)
    retry_after: str = ""
    delay: float = 0.0

    def answer(self, number: int) -> tuple[int, dict[str, str]]:
        """Status and headers of the answer to request `number`, counted from 0."""
        status = self.statuses[min(number, len(self.statuses) - 1)]
        return status, {"Retry-After": self.retry_after} if self.retry_after and status >= 300 else {}


class UnderWay:
    """Counts requests that have arrived and are not answered yet."""

    def __init__(self) -> None:
        self._count = 0
        self._changed = threading.Condition()

    def __enter__(self) -> None:
        with self._changed:
            self._count += 1

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._count -= 1
            self._changed.notify_all()

    def wait(self, patience: float = 30.0) -> None:
        """Wait until there are none, at most `patience` seconds."""
        with self._changed:
            self._changed.wait_for(lambda: self._count == 0, patience)


class Receiver:
    """Listens in threads of its own from `start` to `close`. `take` is called for each request, maybe by several threads."""

    def __init__(
        self, take: Callable[[ReceivedRequest], None], host: str = "127.0.0.1", port: int = 0, script: Script | None = None
    ) -> None:
        try:
            self._under_way = UnderWay()
            self._server = ThreadingHTTPServer((host, port), _handler(take, script or Script(), self._under_way))
        except OSError as error:
            raise PortInUse(f"cannot listen on {host}:{port}: {error.strerror}; choose another port with --port") from error
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        self.url = f"http://{host}:{self.port}"

    def start(self) -> Receiver:
        threading.Thread(target=self.run, name="receiver", daemon=True).start()
        return self

    def run(self) -> None:
        """Listen in this thread until `close`."""
        self._server.serve_forever(poll_interval=0.2)

    def close(self) -> None:
        """Take no more requests, and answer those that have arrived."""
        self._server.shutdown()
        self._under_way.wait()
        self._server.server_close()


def _handler(take: Callable[[ReceivedRequest], None], script: Script, under_way: UnderWay) -> type[BaseHTTPRequestHandler]:
    numbers = itertools.count()
    coming = 0

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            nonlocal coming
            with under_way:
                number = next(numbers)
                coming = number + 1
                status, more = script.answer(number)
                take(ReceivedRequest(self.command, self.path, headers, body))
                time.sleep(script.delay)
                self._answer(status, more)

        do_PUT = do_POST

        def do_HEAD(self) -> None:
            """A health check: answers as the next delivery would be answered."""
            self._answer(*script.answer(coming))

        do_GET = do_HEAD

        def do_OPTIONS(self) -> None:
            """The handshake of CloudEvents webhooks: whoever asks may send."""
            self._answer(HTTPStatus.OK, {"WebHook-Allowed-Origin": self.headers.get("WebHook-Request-Origin") or "*"})

        def _answer(self, status: int, headers: dict[str, str] | None = None) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": "0", **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing: `take` reports what arrived."""

    return Handler
