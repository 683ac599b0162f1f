"""The lines of all parts on one output, each with the name of its part. A stuck or closed output never stops the hub."""

from __future__ import annotations

import json
import logging
import queue
import sys
import threading
from typing import TextIO

_COLORS = {"hub": "1", "api": "36", "pipeline": "35", "deliver": "32"}
_WIDTH = 8
_ROOM = 10_000


class Terminal:
    """Takes lines from any thread and prints them in its own; lines beyond its room are dropped and counted."""

    def __init__(self, out: TextIO | None = None, *, as_json: bool = False) -> None:
        self._out = out or sys.stdout
        self._as_json = as_json
        self._colored = not as_json and self._out.isatty()
        self._lines: queue.Queue[str | None] = queue.Queue(_ROOM)
        self._dropped = 0
        self._thread = threading.Thread(target=self._print, name="terminal", daemon=True)
        self._thread.start()

    def line(self, part: str, text: str) -> None:
        """Print one line of a part, soon."""
        try:
            self._lines.put_nowait(self._shaped(part, text))
        except queue.Full:
            self._dropped += 1

    def close(self, patience: float = 1.0) -> None:
        """Print what waits, for `patience` seconds at the most."""
        try:
            self._lines.put(None, timeout=patience)
        except queue.Full:
            return
        self._thread.join(patience)

    def _shaped(self, part: str, text: str) -> str:
        if self._as_json:
            return text if text.startswith("{") else json.dumps({"part": part, "message": text}, ensure_ascii=False)
        name = part.ljust(_WIDTH)
        return (
            f"\x1b[{_COLORS.get(part.partition('-')[0], '0')}m{name}\x1b[0m │ {text}" if self._colored else f"{name} │ {text}"
        )

    def _print(self) -> None:
        try:
            while (line := self._lines.get()) is not None:
                self._out.write(f"{line}\n")
                if self._dropped and self._lines.empty():
                    dropped, self._dropped = self._dropped, 0
                    self._out.write(f"{self._shaped('hub', f'{dropped} lines were dropped: the output was stuck')}\n")
                self._out.flush()
        except (OSError, ValueError):
            # Nobody reads any more; go on taking lines, so that no part is ever stopped by it.
            while self._lines.get() is not None:
                pass


class TerminalHandler(logging.Handler):
    """Brings the supervisor's own log to the terminal, as the part `hub`."""

    def __init__(self, terminal: Terminal, form: logging.Formatter) -> None:
        super().__init__()
        self._terminal = terminal
        self.setFormatter(form)

    def emit(self, record: logging.LogRecord) -> None:
        self._terminal.line("hub", self.format(record))
