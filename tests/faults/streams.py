"""Reads a subscription's stream for as long as the hub gives one, and takes every frame that came whole."""

from __future__ import annotations

import http.client
import json
import threading
import time

from tests.faults.receipts import Receipts
from tests.hub import Hub

SILENCE = 30.0
"""Seconds without a byte after which a stream is opened anew; comments come every fifteen."""


class StreamReader(threading.Thread):
    """Opens the stream again and again. With `resume` it says by `Last-Event-ID` what it has."""

    def __init__(self, hub: Hub, receipts: Receipts, resume: bool) -> None:
        super().__init__(name=f"stream of {receipts.name}", daemon=True)
        self.stop = threading.Event()
        self._hub = hub
        self._receipts = receipts
        self._resume = resume
        self._last = ""

    def run(self) -> None:
        while not self.stop.is_set():
            connection = http.client.HTTPConnection("127.0.0.1", self._hub.port, timeout=SILENCE)
            try:
                self._read(connection)
            except (OSError, http.client.HTTPException):
                pass
            finally:
                connection.close()
            time.sleep(0.2)

    def _read(self, connection: http.client.HTTPConnection) -> None:
        headers = {"last-event-id": self._last} if self._resume and self._last else {}
        connection.request("GET", f"/api/subscriptions/{self._receipts.name}/stream", headers=headers)
        response = connection.getresponse()
        if response.status != 200:
            response.read()
            return
        frame: dict[str, str] = {}
        while not self.stop.is_set() and (line := response.readline()):
            name, _, value = line.decode().rstrip("\r\n").partition(":")
            if name:
                frame[name] = value.strip()
            elif "data" in frame:
                self._take(frame)
                frame = {}

    def _take(self, frame: dict[str, str]) -> None:
        event = str(json.loads(frame["data"])["id"])
        self._receipts.sent([event])
        self._receipts.took([event])
        self._last = frame["id"]
