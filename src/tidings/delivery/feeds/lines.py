"""Lines of a feed: events and checkpoints, as bytes that end in one LF."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec

from tidings.events.json_lines import compact_event, compact_payload, on_one_line
from tidings.events.model import text_of
from tidings.events.stored import event_from
from tidings.log.port import Row
from tidings.log.position import Offset
from tidings.registry.feeds import LONGEST_LINE, V1Data

ALL = "_all"

EventLine: TypeAlias = Callable[[int, Row], bytes]
"""The line of an event in a partition."""

Checkpoint: TypeAlias = Callable[[int, Offset], bytes]

_encode = msgspec.json.Encoder().encode


def v2_event(partition: int, row: Row) -> bytes:
    """`{"data":{…}}`."""
    return compact_event(row[2], row[3], b'{"data":', b"}\n")


def v2_checkpoint(partition: int, offset: Offset) -> bytes:
    """`{"cursor":"…"}`."""
    return b'{"cursor":"%d"}\n' % offset


def v1_checkpoint(partition: int, offset: Offset) -> bytes:
    """`{"partition":0,"cursor":"…"}`."""
    return b'{"partition":%d,"cursor":"%d"}\n' % (partition, offset)


def v1_event(data: V1Data, headers: frozenset[str]) -> EventLine:
    """Lines of v1 with these headers (lower case; `_all` for all)."""
    body = compact_event if data is V1Data.EVENT else compact_payload

    def plain(partition: int, row: Row) -> bytes:
        return body(row[2], row[3], b'{"partition":%d,"data":' % partition, b"}\n")

    def with_headers(partition: int, row: Row) -> bytes:
        asked = _asked(headers_of(row[2]), headers)
        if not asked:
            return plain(partition, row)
        return body(row[2], row[3], b'{"partition":%d,"headers":%b,"data":' % (partition, _encode(asked)), b"}\n")

    return with_headers if headers else plain


def headers_of(head: bytes) -> dict[str, str]:
    """Every header that an event has to offer (ZEH-17)."""
    event = event_from(head, None)
    headers = {f"ce_{name}": text_of(value) for name, value in event.attributes.items()}
    if event.datacontenttype is not None:
        headers["content-type"] = event.datacontenttype
    return headers | {name.lower(): value for name, value in event.transport.items()}


def _asked(headers: Mapping[str, str], names: frozenset[str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name in names} if ALL not in names else dict(headers)


def finished(lines: list[bytes], before: Callable[[int], bytes]) -> tuple[bytes, int]:
    """The lines together, safe for every splitter, and how many of them are longer than some readers take.

    Such a line has a checkpoint directly before it (`before` makes that of the nth line): a reader that gives up there has kept
    everything up to it, and begins with the long line the next time.
    """
    text = on_one_line(whole := b"".join(lines))
    if text is not whole:
        lines = [on_one_line(line) for line in lines]
    if max(map(len, lines), default=0) <= LONGEST_LINE + 1:
        return text, 0
    long = [len(line) > LONGEST_LINE + 1 for line in lines]
    return b"".join([before(n) + line if long[n] else line for n, line in enumerate(lines)]), sum(long)


class Types:
    """Which event types are shown: compared whole and without regard to case (FAPI-13)."""

    __slots__ = ("_known", "_names", "_wanted", "key")

    def __init__(self, names: frozenset[str], wanted: bool) -> None:
        self._names = names
        self._wanted = wanted
        self._known: dict[bytes, bool] = {}
        self.key = (names, wanted)

    def show(self, head: bytes) -> bool:
        """Whether an event with this stored head is shown."""
        # Quotes inside of JSON strings are escaped, and `type` comes before the hub's own members.
        begin = head.index(b'"type":"') + 8
        raw = head[begin : head.index(b'"', begin)]
        known = self._known.get(raw)
        if known is None:
            if raw.endswith(b"\\"):
                return self._judged(event_from(head, None).type)
            known = self._judged(msgspec.json.decode(b'"%b"' % raw))
            if len(self._known) < 1000:
                self._known[raw] = known
        return known

    def _judged(self, type: str) -> bool:
        return (type.casefold() in self._names) is self._wanted
