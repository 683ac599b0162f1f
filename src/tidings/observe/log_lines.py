"""Log lines: as text for people or JSON for machines, one line per record, secrets never.

`set_up` is called once per process, before anything else is started.
"""

from __future__ import annotations

import json
import logging
import os
import re
import select
import sys
from datetime import UTC, datetime
from typing import TextIO

from tidings.config import ObserveSettings
from tidings.errors import Misconfigured

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
FORMATS = ("auto", "text", "json")

_MOMENT = 0.1
"""Seconds that a line may wait for a slow reader."""

_SECRETS = (
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{4,}"), r"\1 ***"),
    (
        re.compile(r"(?i)((?:token|secret|password|passwd|api[_-]?key|signature)[\w-]*[\"']?\s*[=:]\s*[\"']?)[^\s\"'&,;}]+"),
        r"\1***",
    ),
    (re.compile(r"(://[^/\s:@]+:)[^/\s@]+@"), r"\1***@"),
)
_TALKATIVE = ("py4j", "alembic", "uvicorn", "sqlalchemy")
"""Libraries that tell at info what only their own authors want to know."""
_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}


def set_up(settings: ObserveSettings, part: str, stream: TextIO | None = None) -> None:
    """Send this process's log to `stream` (stderr), as `settings` say. Calling again replaces the former set-up."""
    out = stream or sys.stderr
    handler = NeverWaiting(out) if _never_waits(out) else logging.StreamHandler(out)
    as_json = format_of(settings, terminal=out.isatty()) == "json"
    handler.setFormatter(JsonLines(part) if as_json else TextLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level_of(settings))
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))


def _never_waits(out: TextIO) -> bool:
    """Whether this is the output that a supervisor gave: a pipe that refuses what it has no room for."""
    try:
        return not os.get_blocking(out.fileno())
    except (OSError, ValueError):
        return False


class NeverWaiting(logging.StreamHandler[TextIO]):
    """Writes to a pipe that refuses what it has no room for. What does not fit is dropped, and how much is told afterwards.

    A reader that is merely slow gets a moment; one that reads nothing gets none after the first line that was dropped.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._dropped = 0
        self._cut = False

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._send(f"{self.format(record)}\n")
        except Exception:
            self.handleError(record)

    def _send(self, line: str) -> None:
        lost = f"{self._dropped} log lines were dropped here: nobody read them\n" if self._dropped else ""
        begin = "\n" if self._cut else ""
        data = f"{begin}{lost}{line}".encode("utf-8", "replace")
        sent = self._write(data)
        if sent < len(data) and not self._dropped:
            select.select([], [self.stream], [], _MOMENT)
            sent += self._write(data[sent:])
        if sent == len(data):
            self._dropped, self._cut = 0, False
        else:
            self._dropped, self._cut = self._dropped + 1, self._cut or sent > 0

    def _write(self, data: bytes) -> int:
        try:
            return os.write(self.stream.fileno(), data)
        except BlockingIOError:
            return 0


def format_of(settings: ObserveSettings, *, terminal: bool) -> str:
    """ "text" or "json". Raises Misconfigured."""
    if settings.log_format not in FORMATS:
        raise Misconfigured(
            "unknown form of log lines", at="observe.log_format", found=settings.log_format, expected=", ".join(FORMATS)
        )
    if settings.log_format == "auto":
        return "text" if terminal else "json"
    return settings.log_format


def level_of(settings: ObserveSettings) -> int:
    """The level of the logging module. Raises Misconfigured."""
    if settings.log_level not in LEVELS:
        raise Misconfigured("unknown level", at="observe.log_level", found=settings.log_level, expected=", ".join(LEVELS))
    return LEVELS[settings.log_level]


def without_secrets(text: str) -> str:
    """The text with tokens, passwords and keys blotted out."""
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
    return text


class TextLines(logging.Formatter):
    """`12:30:01.123 warning message`, with the stack of an error below it."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created).strftime("%H:%M:%S.%f")[:-3]
        level = "" if record.levelno == logging.INFO else f"{record.levelname.lower()}: "
        line = f"{time} {level}{record.getMessage()}"
        if record.exc_info:
            line = f"{line}\n{self.formatException(record.exc_info)}"
        return without_secrets(line)


class JsonLines(logging.Formatter):
    """One JSON object per line: time, level, part, logger, message, what was given as `extra`, and the stack of an error."""

    def __init__(self, part: str) -> None:
        super().__init__()
        self._part = part

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "level": record.levelname.lower(),
            "part": self._part,
            "logger": record.name,
            "message": record.getMessage(),
        } | {name: value for name, value in vars(record).items() if name not in _PLAIN}
        if record.exc_info:
            line["stack"] = self.formatException(record.exc_info)
        return json.dumps({name: _clean(value) for name, value in line.items()}, ensure_ascii=False)


def _clean(value: object) -> object:
    return value if isinstance(value, (int, float, bool, type(None))) else without_secrets(str(value))
