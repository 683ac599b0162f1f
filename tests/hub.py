"""A whole hub as real processes, for tests that speak HTTP and for killing."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from tests.polling import until
from tidings.observe.part_status import read_faces

PARTS = ("api", "pipeline", "deliver")


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Hub:
    """Starts `tidings serve` on a free port; everything it prints goes to `hub.log` beside the data folder, or in `beside`."""

    def __init__(self, data: Path, settings: str = "", beside: Path | None = None) -> None:
        self.data = data
        self.port = free_port()
        self.log = (beside or data.parent) / "hub.log"
        self._config = (beside or data.parent) / "hub.toml"
        self.configure(settings)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def configure(self, settings: str) -> None:
        """Settings that hold from the next start on."""
        self._config.write_text(settings)

    def start(self) -> Hub:
        command = [sys.executable, "-m", "tidings.cli", "serve", "--data", str(self.data), "--port", str(self.port)]
        with self.log.open("ab") as out:
            self._process = subprocess.Popen(
                [*command, "--config", str(self._config)], stdout=out, stderr=out, stdin=subprocess.DEVNULL
            )
        return self

    def wait_ready(self, within: float = 120) -> Hub:
        self.until(lambda: self.call("GET", "/health/ready").status == 200, within, "the hub is ready")
        return self

    def wait_live(self, within: float = 30) -> Hub:
        self.until(lambda: self.call("GET", "/health/live").status == 200, within, "the hub is live")
        return self

    def until(self, holds: Any, within: float, what: str) -> None:
        """Wait until `holds()` is true; a refused connection counts as not yet."""

        def answered() -> bool:
            with suppress(OSError, http.client.HTTPException):
                if holds():
                    return True
            if self._process is not None and self._process.poll() is not None:
                raise AssertionError(f"the hub ended with {self._process.returncode}:\n{self.tail()}")
            return False

        until(answered, lambda: f"{what}\n{self.tail()}", within=within)

    def call(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Answer:
        """One request. A body that is not bytes is sent as JSON."""
        raw = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        given = {"content-type": "application/json", **(headers or {})} if raw is not None else dict(headers or {})
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            connection.request(method, path, raw, given)
            response = connection.getresponse()
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def child(self, part: str) -> int | None:
        """The process id of a part, while it lives."""
        face = read_faces(self.data / "run").get(part)
        return face.pid if face is not None and face.reason != "its process has ended" else None

    def is_ready(self, part: str) -> bool:
        face = read_faces(self.data / "run").get(part)
        return face is not None and face.ready

    def kill(self, part: str) -> bool:
        """kill -9 of a part, or of the supervisor; whether there was anything to kill."""
        pid = self.pid if part == "supervisor" else self.child(part)
        if pid is None:
            return False
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return False
        if part == "supervisor":
            assert self._process is not None
            self._process.wait()
        return True

    def ended(self, within: float = 60) -> int:
        """Wait until it ends by itself; the exit status."""
        assert self._process is not None
        try:
            return self._process.wait(within)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the hub did not end within {within:.0f} s\n{self.tail()}") from None

    def stop(self, within: float = 40) -> int:
        """SIGTERM and wait; the exit status."""
        assert self._process is not None
        if self._process.poll() is None:
            self._process.terminate()
        try:
            return self._process.wait(within)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise AssertionError(f"the hub did not stop within {within:.0f} s\n{self.tail()}") from None

    def tail(self, lines: int = 60) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:]) if self.log.exists() else ""
