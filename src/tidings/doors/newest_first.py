"""Reading a topic backwards: its events from the newest down, in windows, so that neither a long nor a thin topic costs much."""

from __future__ import annotations

from collections.abc import Iterator

from tidings.log.port import Entry, Limit, LogReader
from tidings.log.position import EMBEDDED, START, Offset, TopicNumber

NARROW, WIDE, MANY = 1024, 1 << 40, 4096
_PAGE = Limit(entries=1000, bytes=32 << 20)


def newest(reader: LogReader, topic: TopicNumber, above: Offset = START, below: Offset | None = None) -> Iterator[Entry]:
    """The topic's entries between two offsets, both left out, newest first."""
    end = Offset(reader.ends().get(EMBEDDED, START) + 1)
    high, width = (end if below is None else min(below, end)), NARROW
    while high > above + 1:
        low = Offset(max(above, high - width))
        found = _between(reader, topic, low, high, MANY if width > NARROW else NARROW)
        if found is None:
            width = NARROW
            continue
        yield from reversed(found)
        width = min(WIDE, width * 4) if len(found) < NARROW // 4 else NARROW
        high = Offset(low + 1)


def _between(reader: LogReader, topic: TopicNumber, low: Offset, high: Offset, most: int) -> list[Entry] | None:
    """The entries between two offsets; None when they are too many for one window."""
    found: list[Entry] = []
    after = low
    while True:
        page = reader.read(topic, {EMBEDDED: after}, _PAGE)
        found += [entry for entry in page.entries if entry.position.offset < high]
        if not page.entries or page.entries[-1].position.offset >= high - 1:
            return found
        if len(found) > most:
            return None
        after = page.entries[-1].position.offset
