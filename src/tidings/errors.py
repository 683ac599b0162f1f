"""The one tree of errors. Each says what is wrong, where, and what would be right, as fields.

TidingsError
├── Rejected              the caller can fix it
│   ├── Malformed         what came cannot be read
│   │   ├── InvalidEvent
│   │   ├── InvalidDocument
│   │   ├── AvroFault
│   │   └── FilterSyntaxError
│   ├── Unauthenticated
│   ├── Forbidden
│   ├── NotFound
│   ├── Conflict
│   │   ├── DuplicateEvent
│   │   └── RepartitionRunning
│   ├── Expired
│   ├── TooLarge
│   ├── UnsupportedFormat
│   ├── SinkForbidden
│   └── HandshakeRefused
├── Unavailable           trying later may work
│   ├── LogUnavailable
│   ├── Overloaded
│   ├── NotReady
│   ├── StreamIdle
│   ├── ClockLeapt
│   └── HubUnreachable
├── HubProblem            what a hub answered to its client
│   ├── CursorExpired
│   └── TokenStale
├── FeedUnreadable        what a feed sent breaks the protocol
│   ├── BadLine
│   └── LineTooLong
├── CursorMoved           two readers save into one place
└── Misconfigured         refuse to start
    ├── UnknownSetting
    ├── DataFolderUnusable
    ├── DataVersionUnsupported
    ├── PortInUse
    └── JavaMissing
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

_PREDICATES = ("must ", "is ", "has ", "lists ", "names ", "says ", "looks ", "begins ", "works;")
_LOOK = 400
_LARGE = 1e18
_MOST_BITS = 128


class TidingsError(Exception):
    """Anything this hub raises on purpose. `code` is stable and meant for programs, `str()` for people."""

    code: ClassVar[str] = "error"

    def __init__(self, what: str, *, at: str = "", found: object = None, expected: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.at = at
        self.found = found
        self.expected = expected

    def __str__(self) -> str:
        place = f" at {self.at}" if self.at else ""
        found = f", found {shortened(self.found)}" if self.found is not None else ""
        expected = f"; expected {self.expected}" if self.expected else ""
        return f"{self.what}{place}{found}{expected}"


def shortened(value: object, limit: int = 80) -> str:
    """A value as a person may read it: as in JSON, but texts in single quotes; never more than `limit` characters."""
    text = _shown(value)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def plain_number(value: float) -> str:
    """A number in digits, as people write it: 604800000, not 6.048e+08."""
    if isinstance(value, float) and not math.isfinite(value):
        return "not a number" if math.isnan(value) else "infinity" if value > 0 else "-infinity"
    if abs(value) >= _LARGE:
        return _digits(int(value))
    return str(int(value)) if value == int(value) else repr(value)


def _digits(value: int) -> str:
    return str(value) if value.bit_length() < _MOST_BITS else "a number of so many digits"


def _shown(value: object) -> str:
    match value:
        case str():
            return _quoted(value)
        case bytes():
            return _quoted(value[:_LOOK].decode("utf-8", "replace"))
        case None | bool():
            return json.dumps(value)
        case int() | float():
            return plain_number(value)
        case dict() | list() | tuple():
            return _quoted_less(value)
    return str(value)


def _quoted(text: str) -> str:
    """The text in quotes; what cannot be seen is escaped, what can be stays as it was written."""
    text = text[:_LOOK]
    if not text.isprintable():
        return repr(text)
    return f'"{text}"' if "'" in text and '"' not in text else f"'{text}'"


def _quoted_less(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        return "a value that is too deep"


class Rejected(TidingsError):
    """The caller can fix it. `faults` names the events of a request that are meant, where there are any."""

    code = "rejected"
    faults: tuple[EventFault, ...] = ()


class Malformed(Rejected):
    """What came cannot be read as what it should be."""

    code = "malformed"


@dataclass(frozen=True, slots=True)
class EventFault:
    """One thing wrong with one event of a request. `pointer`: where in the payload (JSON pointer), if that can be said."""

    index: int
    attribute: str
    code: str
    detail: str
    pointer: str | None = None

    @property
    def sentence(self) -> str:
        """What is wrong, with its place in the payload."""
        return self.detail if self.pointer is None else f"at {self.pointer or 'the top'}: {self.detail}"


class InvalidEvent(Malformed):
    """One or more events of a request break the rules; nothing of the request was stored."""

    code = "invalid-event"

    def __init__(self, faults: Sequence[EventFault]) -> None:
        first = faults[0]
        super().__init__(
            first.sentence, at=f"event {first.index}, {first.attribute}" if first.attribute else f"event {first.index}"
        )
        self.faults = tuple(faults)


class InvalidDocument(Malformed):
    """Topics, subscriptions or the like break the rules; nothing was changed. A fault's `attribute` is the path of a field."""

    code = "invalid-document"

    def __init__(self, faults: Sequence[EventFault]) -> None:
        first = faults[0]
        super().__init__(first.detail, at=first.attribute)
        self.faults = tuple(faults)

    def __str__(self) -> str:
        """`kind is missing` where the detail goes on from the path; else the detail and its place."""
        if self.what.startswith(_PREDICATES):
            return f"{self.at or 'the body'} {self.what}"
        return super().__str__()


class AvroFault(Malformed):
    """A payload that is not what its Avro schema describes. `pointer`: the JSON pointer of the value that does not fit."""

    code = "invalid-avro"

    def __init__(self, reason: str, pointer: str) -> None:
        super().__init__(reason, at=pointer or "the top")
        self.pointer = pointer


class FilterSyntaxError(Malformed):
    """A filter cannot be evaluated as written."""

    code = "invalid-filter"


class Unauthenticated(Rejected):
    """Nobody knows who asks."""

    code = "unauthenticated"


class Forbidden(Rejected):
    """The caller is known and may not."""

    code = "forbidden"


class NotFound(Rejected):
    """There is nothing of that name."""

    code = "not-found"


class Conflict(Rejected):
    """What is asked for contradicts what is there."""

    code = "conflict"


class DuplicateEvent(Conflict):
    """The same source and id were published before with other content."""

    code = "duplicate-event"


class RepartitionRunning(Conflict):
    """The partitions of this feed are being changed already."""

    code = "repartition-running"


class Expired(Rejected):
    """It was there once; retention removed it."""

    code = "expired"


class TooLarge(Rejected):
    """More bytes or items than the limit."""

    code = "too-large"


class UnsupportedFormat(Rejected):
    """A content type or encoding this hub does not read."""

    code = "unsupported-format"


class SinkForbidden(Rejected):
    """A callback's address may not be reached, or not be found. Never tells the address that a name stands for."""

    code = "sink-forbidden"


class HandshakeRefused(Rejected):
    """The callback does not consent to deliveries."""

    code = "handshake-refused"


class Unavailable(TidingsError):
    """Trying later may work; `retry_after` says when, in seconds."""

    code = "unavailable"

    def __init__(self, what: str, *, at: str = "", found: object = None, expected: str = "", retry_after: int = 1) -> None:
        super().__init__(what, at=at, found=found, expected=expected)
        self.retry_after = retry_after


class LogUnavailable(Unavailable):
    """The log cannot take or give entries now (disk full, read-only, closing)."""

    code = "log-unavailable"


class Overloaded(Unavailable):
    """More is waiting than the hub is willing to hold in memory."""

    code = "overloaded"


class NotReady(Unavailable):
    """A part has not started yet or has stopped."""

    code = "not-ready"


class StreamIdle(Unavailable):
    """Nothing came for a stream in the time that it waits."""

    code = "stream-idle"


class ClockLeapt(Unavailable):
    """The machine's clock is far ahead of the time that has passed: what goes by age waits."""

    code = "clock-leapt"


class HubUnreachable(Unavailable):
    """Nobody answers where the hub should be; for its clients."""

    code = "hub-unreachable"


class HubProblem(TidingsError):
    """A hub refused what its client asked; `problem` is its answer (problem+json), `str()` the sentence in it."""

    code = "hub-problem"

    def __init__(self, what: str, problem: Mapping[str, Any]) -> None:
        super().__init__(what)
        self.problem = problem


class CursorExpired(HubProblem):
    """Events after the cursor were removed; `first` is the oldest cursor that still can be used, where the feed told it."""

    code = "feed-cursor-expired"

    @property
    def first(self) -> str | None:
        found = self.problem.get("first")
        return None if found is None else str(found)


class TokenStale(HubProblem):
    """The partitions of a feed changed: it has to be discovered again."""

    code = "feed-token-stale"


class FeedUnreadable(TidingsError):
    """What a feed sent cannot be read; nothing of it was taken."""

    code = "feed-unreadable"


class BadLine(FeedUnreadable):
    """A line of a feed is neither an event nor a checkpoint."""

    code = "bad-line"


class LineTooLong(FeedUnreadable):
    """A line of a feed is longer than any event may be."""

    code = "line-too-long"


class CursorMoved(TidingsError):
    """Somebody else saved a cursor of this feed to the same place; what was about to be saved was rolled back."""

    code = "cursor-moved"


class Misconfigured(TidingsError):
    """The hub refuses to start like this."""

    code = "misconfigured"


class UnknownSetting(Misconfigured):
    """A settings key that does not exist."""

    code = "unknown-setting"


class DataFolderUnusable(Misconfigured):
    """The data folder is held by another hub, read-only, or damaged."""

    code = "data-folder-unusable"


class DataVersionUnsupported(Misconfigured):
    """A data file was written by a newer version."""

    code = "data-version-unsupported"


class PortInUse(Misconfigured):
    """Something else listens there."""

    code = "port-in-use"


class JavaMissing(Misconfigured):
    """No Java that Spark can run on."""

    code = "java-missing"


@contextmanager
def tolerating(*kinds: type[BaseException], doing: str) -> Iterator[None]:
    """Go on when one of `kinds` is raised, and say in the log what was being done."""
    try:
        yield
    except kinds as error:
        logging.getLogger("tidings").warning("could not finish %s: %s", doing, error)
