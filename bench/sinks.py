"""What deliveries are sent to: nginx that answers 204 where it is installed, else the cheapest sink of our own.

The sink shares the machine with what is measured, so its own CPU is part of the table.
"""

from __future__ import annotations

import asyncio
import http.client
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvloop

from bench.processes import cpu_of
from tests.hub import free_port

ANSWER = b"HTTP/1.1 204 No Content\r\n\r\n"

_NGINX = """
daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/log crit;
events {{ worker_connections 4096; }}
http {{
  access_log off; keepalive_requests 1000000000; keepalive_timeout 600;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  server {{ listen 127.0.0.1:{port} backlog=2048; location / {{ return 204; }} location = /seen {{ stub_status; }} }}
}}
"""


@dataclass(slots=True)
class Sink:
    """A sink that runs. `seen` counts requests; each time it is asked counts as one more and is taken off again."""

    name: str
    port: int
    pid: int
    asked: int = 0

    def seen(self) -> int:
        """How many requests came so far."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request("GET", "/seen")
        text = connection.getresponse().read().decode()
        connection.close()
        self.asked += 1
        return int(re.findall(r"\d+", text)[3 if "accepts" in text else 0]) - self.asked

    def cpu(self) -> float:
        """CPU seconds used so far, workers included."""
        return cpu_of(self.pid)

    def when(self, count: int, patience: float = 60.0) -> tuple[float, int]:
        """When at least this many had come, and how many they were then."""
        end = time.monotonic() + patience
        while time.monotonic() < end:
            seen = self.seen()
            if seen >= count:
                return time.monotonic(), seen
            time.sleep(0.01)
        raise TimeoutError(f"only some of {count} requests arrived")


@contextmanager
def a_sink() -> Iterator[Sink]:
    """A sink that answers 204 to everything."""
    nginx = shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
    with tempfile.TemporaryDirectory(prefix="tidings-sink-") as folder:
        port = free_port()
        if nginx is not None:
            file = Path(folder) / "nginx.conf"
            file.write_text(_NGINX.format(folder=folder, port=port))
            command = [nginx, "-p", folder, "-c", str(file)]
        else:
            command = [sys.executable, "-m", "bench.sinks", str(port)]
        child = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            sink = Sink("nginx" if nginx else "our own sink", port, child.pid)
            _wait_for(sink)
            yield sink
        finally:
            child.terminate()
            child.wait(20)


def _wait_for(sink: Sink) -> None:
    end = time.monotonic() + 10
    while True:
        try:
            sink.seen()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)


class _Own(asyncio.Protocol):
    """Just enough HTTP/1.1."""

    requests = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        self._buffer = b""

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end]
            length = 0
            if not head.startswith(b"GET"):
                length = int(head[head.index(b"\r\ncontent-length: ") + 18 :].split(b"\r\n", 1)[0])
            if len(self._buffer) < end + 4 + length:
                return
            self._buffer = self._buffer[end + 4 + length :]
            _Own.requests += 1
            text = b"%d" % _Own.requests
            asked = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(text), text)
            self._transport.write(asked if head.startswith(b"GET") else ANSWER)


async def _serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(_Own, "127.0.0.1", port, backlog=2048)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_serve(int(sys.argv[1])))
