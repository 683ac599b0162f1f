"""From bytes to events and checkpoints: split on LF only, one JSON object a line (FCL-03, FCL-04, FCL-22). No I/O.

| line | means |
|---|---|
| blank, or with neither `data` nor `cursor` | nothing: for clients of a later version |
| `data` an object or a string | an event |
| `data` a list, a number or a bool | an event in version 1, BadLine in version 2 |
| `cursor` a text | a checkpoint: what came before it may be saved with this cursor |
| both | the event, then the checkpoint |
| `data` null; no JSON | BadLine |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

import msgspec

from tidings.client.feeds.discovery import V1, V2
from tidings.errors import BadLine, LineTooLong

LINE_LIMIT = 16 << 20
_OBJECT, _STRING = b'{"'
_NOTHING = msgspec.Raw()

_any = msgspec.json.Decoder()
_last: tuple[bytes, Any] = (b"", None)
"""What was decoded last. Asking one event for several things decodes it once; keeping all of a batch would double the cost."""


class FeedEvent(msgspec.Struct, eq=False, gc=False):
    """One event: `raw` is the JSON text of its `data`, byte for byte as it came; `headers` are those of version 1."""

    partition: str
    raw: bytes
    headers: dict[str, Any] | None = None

    @property
    def data(self) -> Any:
        """The event itself, a dict (most often a CloudEvent) or a string; in version 1 any JSON value. Decoded when asked for."""
        global _last
        raw, value = _last
        if raw is not self.raw:
            value = _any.decode(self.raw)
            _last = (self.raw, value)
        return value

    def __repr__(self) -> str:
        return f"Event({self.partition!r}, {self.raw[:80]!r})"


class Checkpoint(msgspec.Struct, frozen=True):
    """Everything before it in this partition has come; reading goes on from `cursor`."""

    partition: str
    cursor: str


@dataclass(frozen=True, slots=True)
class Batch(Sequence[FeedEvent]):
    """Events of one partition up to a checkpoint, in order. `exactly_once` False: the feed may show an event again later.

    `since` is the cursor it begins after. `checkpoints` are those of the answer that fall into it: how many of its
    events came before each, and its cursor; the last one is `cursor`.
    """

    partition: str
    cursor: str
    events: tuple[FeedEvent, ...]
    exactly_once: bool = False
    since: str = ""
    checkpoints: tuple[tuple[int, str], ...] = ()

    def __len__(self) -> int:
        return len(self.events)

    def __iter__(self) -> Iterator[FeedEvent]:
        return iter(self.events)

    @overload
    def __getitem__(self, index: int) -> FeedEvent: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[FeedEvent, ...]: ...
    def __getitem__(self, index: int | slice) -> FeedEvent | tuple[FeedEvent, ...]:
        return self.events[index]


class _Line(msgspec.Struct, gc=False):
    data: msgspec.Raw = _NOTHING
    cursor: str | None = None
    partition: int | str | None = None
    headers: dict[str, Any] | None = None


_decoder = msgspec.json.Decoder(_Line)


class Lines:
    """One answer, fed in chunks of any size. `partition` is meant where a line names none."""

    def __init__(self, partition: str, limit: int = LINE_LIMIT, *, version: int = V2) -> None:
        self._partition = partition
        self._limit = limit
        self._version = version
        self._rest: list[bytes] = []
        self._held = 0

    def feed(self, chunk: bytes) -> list[FeedEvent | Checkpoint]:
        """What the lines that this chunk completed say. Raises BadLine, LineTooLong."""
        cut = chunk.rfind(b"\n") + 1
        if not cut:
            self._hold(chunk)
            return []
        whole = b"".join([*self._rest, chunk[:cut]]) if self._rest else chunk[:cut]
        if self._held + chunk.find(b"\n") > self._limit:
            raise self._too_long()
        self._rest, self._held = [], 0
        self._hold(chunk[cut:])
        return self._read(whole)

    def close(self) -> list[FeedEvent | Checkpoint]:
        """The last line, when its LF was left out. What is not whole was cut off, and is read again from the checkpoint."""
        last = b"".join(self._rest).strip()
        self._rest, self._held = [], 0
        if not last.endswith(b"}"):
            return []
        try:
            return self._read(last + b"\n")
        except BadLine:
            return []

    def _hold(self, part: bytes) -> None:
        if part:
            self._rest.append(part)
            self._held += len(part)
            if self._held > self._limit:
                raise self._too_long()

    def _too_long(self) -> LineTooLong:
        return LineTooLong("a line of the feed is too long", expected=f"at most {self._limit} bytes")

    def _read(self, whole: bytes) -> list[FeedEvent | Checkpoint]:
        try:
            lines = _decoder.decode_lines(whole)
        except (msgspec.MsgspecError, RecursionError):
            lines = []
        if len(lines) != whole.count(b"\n"):
            # Blank lines, and whatever else is not one object a line, are looked at one by one.
            lines = [line for one in whole.split(b"\n") if (line := _one(one)) is not None]
        return self._said(lines)

    def _said(self, lines: list[_Line]) -> list[FeedEvent | Checkpoint]:
        said: list[FeedEvent | Checkpoint] = []
        add, usual = said.append, self._partition
        for line in lines:
            named = line.partition
            partition = usual if named is None else str(named)
            if line.data is not _NOTHING:
                raw = bytes(line.data)
                if raw[0] != _OBJECT and raw[0] != _STRING:
                    self._check_value(raw)
                add(FeedEvent(partition, raw, line.headers))
            if line.cursor:
                add(Checkpoint(partition, line.cursor))
        return said

    def _check_value(self, raw: bytes) -> None:
        if raw == b"null":
            raise BadLine("the data of an event is null")
        if self._version != V1:
            raise BadLine("the data of an event is neither an object nor a string", found=raw[:60])


def _one(line: bytes) -> _Line | None:
    """One line, or None when it says nothing to us."""
    if not line.strip():
        return None
    try:
        return _decode(line)
    except RecursionError as error:
        raise BadLine("a line of the feed nests too deeply", found=line[:80]) from error
    except msgspec.MsgspecError as error:
        raise BadLine(f"a line of the feed is no JSON: {error}", found=line[:80]) from error


def _decode(line: bytes) -> _Line | None:
    try:
        return _decoder.decode(line)
    except msgspec.ValidationError as error:
        known = _any.decode(line)
        if isinstance(known, dict) and ("data" in known or "cursor" in known):
            raise BadLine(f"a line of the feed cannot be read: {error}", found=line[:80]) from error
        return None
