"""A small receiving endpoint: takes every request, tells what arrived, answers as it is told. For `listen` and the demo."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tidings.errors import PortInUse


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    def event(self) -> dict[str, Any]:
        """The event in it as one JSON document, whether it came binary or structured; the plain body when it is none."""
        parsed = _json_or_text(self.body)
        if isinstance(parsed, dict) and "specversion" in parsed:
            return parsed
        attributes = {name.removeprefix("ce-"): value for name, value in self.headers.items() if name.startswith("ce-")}
        return {**attributes, "data": parsed}


def _json_or_text(body: bytes) -> Any:
    try:
        return json.loads(body) if body else None
    except ValueError:
        return body.decode("utf-8", "replace")


class Receiver:
    """Listens in threads of its own from `start` to `close`. `take` is called for each request, maybe by several threads."""

    def __init__(
        self, take: Callable[[Arrival], None], host: str = "127.0.0.1", port: int = 0, answer: int = HTTPStatus.NO_CONTENT
    ):
        try:
            self._server = ThreadingHTTPServer((host, port), _handler(take, answer))
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
        self._server.shutdown()
        self._server.server_close()


def _handler(take: Callable[[Arrival], None], answer: int) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            take(Arrival(self.command, self.path, headers, body))
            self._answer(answer)

        do_PUT = do_POST

        def do_OPTIONS(self) -> None:
            """The handshake of CloudEvents webhooks: whoever asks may send."""
            self._answer(HTTPStatus.OK, {"WebHook-Allowed-Origin": self.headers.get("WebHook-Request-Origin") or "*"})

        def _answer(self, status: int, headers: dict[str, str] | None = None) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": "0", **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: `take` tells what arrived."""

    return Handler
