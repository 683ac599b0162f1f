"""An entry on its way: ready to be sent (a parcel), and open (an item)."""

from __future__ import annotations

from enum import IntEnum

import msgspec

from tidings.clock import Instant
from tidings.lanes.port import StoredEntry
from tidings.log.position import Position
from tidings.registry.rules.retention import NEVER

EXPIRED = "expired"
"""The fault of an entry that retention removed."""

DUE = Instant(0)
"""Due whatever the clock says: what has had its turn to wait must not wait again because the clock was set back."""


class Parcel(msgspec.Struct, gc=False):
    """An entry ready to be sent. `fault`: it cannot be sent, and why (retention removed it, it cannot be read).

    `until` is when its retention ends: after that it is not sent, though it may still be there. `stored` is what it was made of.
    """

    number: int
    position: Position
    headers: dict[str, str]
    body: bytes
    fault: str = ""
    published: Instant = Instant(0)
    key: int = 0
    until: Instant = NEVER
    stored: StoredEntry | None = None


class ItemStage(IntEnum):
    """Where an item is; `state` draws it."""

    WAITING = 0
    SENDING = 1
    CLOSING = 2
    ABANDONED = 3
    GONE = 4


WAITING, SENDING, CLOSING, ABANDONED, GONE = ItemStage
"""The same as plain names: they are compared several times for every delivery."""


class Item(msgspec.Struct, gc=False, eq=False):
    """One open entry. `tries` counts finished attempts, `key` is the hash of its partition key, for the order per key.

    `again`: it was final before and is sent once more. `batch` is the number of the first member of the batch that it belongs to.
    `when` is its due time in monotonic seconds. `kept`: it is saved as a row of its own, not with the lane.
    """

    number: int
    position: Position
    tries: int = 0
    due: Instant = DUE
    since: Instant = Instant(0)
    cause: str = ""
    again: bool = False
    key: int = 0
    batch: int = 0
    stage: ItemStage = WAITING
    when: float = 0.0
    parcel: Parcel | None = None
    kept: bool = False
