"""Spark's offsets: how far every partition was read, and exactly which events belong to the batch that ends there.

Cursors are opaque, and a server may set its checkpoints elsewhere when it is asked again (ZEH-13). So the end of a batch cannot be
found again by its cursor. An offset therefore names the events of its batch, six bytes each: whoever reads the batch, and however
often, reads from its beginning until all of them were seen, and takes these and no others. The next batch goes on from the cursor.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import msgspec

from tidings.client.feeds.lines import FeedEvent
from tidings.client.feeds.store import StoredCursor

_SIZE = 6

Offset = dict[str, Any]


class _Named(msgspec.Struct):
    id: str
    source: str


_named = msgspec.json.Decoder(_Named)


@dataclass(frozen=True, slots=True)
class Portion:
    """What one Spark partition reads: from a cursor of a partition of the feed, these events."""

    partition: str
    cursor: str
    names: bytes

    def __len__(self) -> int:
        return len(self.names) // _SIZE

    def each(self) -> Iterator[bytes]:
        """The names one by one."""
        return (self.names[at : at + _SIZE] for at in range(0, len(self.names), _SIZE))


def name_of(event: FeedEvent) -> bytes:
    """What an event is recognized by: a CloudEvent by its source and id, anything else by its text."""
    try:
        named = _named.decode(event.raw)
        text = f"{named.source}\n{named.id}".encode()
    except msgspec.MsgspecError:
        text = event.raw
    return blake2b(text, digest_size=_SIZE).digest()


def offset_of(kept: Mapping[str, StoredCursor], portions: Iterable[Portion]) -> Offset:
    """As Spark keeps it."""
    return {
        "partitions": {id: {"cursor": row.cursor, "finished": row.finished} for id, row in kept.items()},
        "batch": {
            one.partition: {"cursor": one.cursor, "events": b64encode(one.names).decode()} for one in portions if one.names
        },
    }


def kept_in(offset: Offset) -> dict[str, StoredCursor]:
    """How far every partition was read."""
    return {id: StoredCursor(row["cursor"], row["finished"]) for id, row in offset["partitions"].items()}


def portions_in(offset: Offset) -> list[Portion]:
    """What the batch that ends at this offset consists of."""
    return [Portion(id, one["cursor"], b64decode(one["events"])) for id, one in offset["batch"].items()]
