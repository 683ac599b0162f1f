"""A page in a real browser: Chromium without a window, and what its page tells the test."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.receivers import Answer, Arrival, Receiver

CHROMIUM = next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed (make browser)")

_TELL = "const tell = (what, more) => fetch('/told', {method: 'POST', body: JSON.stringify({what, ...more})});"


class Page:
    """A page of an origin of its own. Its script calls `tell(what, {…})`; the test waits for what was told."""

    def __init__(self, server: Receiver) -> None:
        self._server = server
        self._script = ""
        server.script = self._answer

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self._server.port}"

    def told(self, what: str, count: int = 1, within: float = 90.0) -> list[Any]:
        """What the page told under this word, once it was so often."""
        self._server.wait_until(lambda _: len(self.heard(what)) >= count, within)
        return self.heard(what)

    def heard(self, what: str) -> list[Any]:
        """What the page told under this word until now."""
        notes = [json.loads(one.body) for one in list(self._server.arrivals) if one.path == "/told"]
        return [note for note in notes if note["what"] == what]

    @contextmanager
    def shown(self, script: str, folder: Path) -> Iterator[None]:
        """Show the page in a browser with a new profile."""
        assert CHROMIUM is not None
        self._script = script
        command = [CHROMIUM, *FLAGS, f"--user-data-dir={folder}", f"{self.origin}/"]
        with (folder.parent / "browser.log").open("ab") as log:
            browser = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        try:
            yield
        finally:
            browser.terminate()
            browser.wait(30)

    def _answer(self, arrival: Arrival) -> Answer:
        if arrival.path != "/":
            return Answer(204 if arrival.path == "/told" else 404)
        page = f"<!doctype html><title>page</title><script>{_TELL}{self._script}</script>"
        return Answer(200, {"content-type": "text/html; charset=utf-8"}, page.encode())


@contextmanager
def a_page() -> Iterator[Page]:
    """A page's server, from here to the end."""
    with Receiver() as server:
        yield Page(server)
