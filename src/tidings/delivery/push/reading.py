"""From lane entries to parcels: offsets from the lane, entries from the log in pages, each laid out once for a content mode.

Reads are small and happen on the event loop: handing a page of rows through a thread costs more than reading it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence

from tidings.delivery.push.lane import Item
from tidings.delivery.push.pushing import EXPIRED, Parcel, PushLane
from tidings.delivery.push.store import DeliveryStore, position_of
from tidings.errors import Malformed
from tidings.events.http import encode_binary, encode_structured
from tidings.events.stored import event_from
from tidings.ids import DeliveryIds
from tidings.log.port import LanesReader, LogReader
from tidings.log.position import Offset, Partition
from tidings.registry.model import ContentMode

PAGE_ENTRIES = 200
LAST_ENTRIES = 8
AHEAD = 2048
LAID_OUT_BYTES = 4 << 20

Laid = tuple[list[tuple[str, str]], bytes, str]
"""An entry laid out: headers, body, fault."""


class Reading:
    """Fills lanes with parcels. What one subscription had laid out, the next one with the same mode need not."""

    def __init__(self, lanes: LanesReader, log: LogReader, store: DeliveryStore, ids: DeliveryIds) -> None:
        self._lanes = lanes
        self._log = log
        self._store = store
        self._id_text = ids.text_of
        self._laid = LaidOut()

    def fill(self, lane: PushLane) -> bool:
        """Read the next live entries of a lane into `ready`. False: there are none now."""
        if not lane.ahead and not self._look_ahead(lane):
            lane.more = False
            return False
        # A lane with a small window needs no long page: memory is shared by all lanes.
        size = min(PAGE_ENTRIES, max(LAST_ENTRIES, int(lane.window) * 2), max(1, lane.state.room))
        offsets = lane.ahead[:size]
        del lane.ahead[:size]
        lane.ready.extend(self._parcels(lane, offsets, kept=False))
        return True

    def load(self, lane: PushLane) -> None:
        """Read a page of the due items of a lane into `loaded`."""
        items: list[Item] = []
        while lane.due and len(items) < LAST_ENTRIES * 4:
            item = lane.due.popleft()
            if lane.state.holds(item) and not item.sending:
                items.append(item)
        again = any(item.again for item in items)
        parcels = self._parcels(lane, [item.offset for item in items], kept=again)
        lane.loaded.extend(zip(items, parcels, strict=True))

    def contains(self, lane: PushLane, offset: Offset) -> bool:
        """Whether the lane has this entry."""
        blocks = self._lanes.blocks(lane.key.lane, Offset(offset - 1), lane.key.partition, 1)
        return any(offset in array("q", block.offsets) for block in blocks)

    def _look_ahead(self, lane: PushLane) -> bool:
        for block in self._lanes.blocks(lane.key.lane, Offset(lane.read), lane.key.partition, 1):
            offsets = array("q", block.offsets)
            begin = bisect_right(offsets, lane.read)
            lane.ahead = offsets[begin : begin + AHEAD]
            lane.read = lane.ahead[-1]
        return bool(lane.ahead)

    def _parcels(self, lane: PushLane, offsets: Sequence[int], *, kept: bool) -> list[Parcel]:
        """A parcel for every offset. `kept`: an entry that left the log may still have its copy as a dead letter."""
        assert lane.policy is not None
        mode, own = lane.policy.mode, lane.policy.headers
        number, partition = lane.key
        laid = self._lay_out(lane, mode, offsets, kept)
        id_text = self._id_text
        parcels = []
        for offset in offsets:
            headers, body, fault = laid[offset]
            all_headers = {**own, **dict(headers), "tidings-delivery-id": id_text(number, partition, offset)}
            parcels.append(Parcel(Offset(offset), all_headers, body, fault))
        return parcels

    def _lay_out(self, lane: PushLane, mode: ContentMode, offsets: Sequence[int], kept: bool) -> Mapping[int, Laid]:
        partition = lane.key.partition
        laid, missing = self._laid.known(mode, partition, offsets)
        if not missing:
            return laid
        entries = self._log.fetch([position_of(lane.key, offset) for offset in missing])
        for position, entry in entries.items():
            laid[position.offset] = made = lay_out(mode, entry.head, entry.data)
            self._laid.keep(mode, partition, position.offset, made)
        gone = [Offset(offset) for offset in missing if offset not in laid]
        if gone and kept:
            for offset, letter in self._store.buried(lane.key, gone).items():
                laid[offset] = lay_out(mode, letter.head, letter.data)
        for offset in gone:
            laid.setdefault(offset, ([], b"", EXPIRED))
        return laid


def lay_out(mode: ContentMode, head: bytes, data: bytes | None) -> Laid:
    """The entry as a request. A binary request has to have a payload, so an event without one goes structured (WH-01)."""
    try:
        event = event_from(head, data)
    except Malformed as error:
        return [], b"", str(error)
    if mode is ContentMode.BINARY and event.data is not None:
        return *encode_binary(event), ""
    return *encode_structured(event), ""


class LaidOut:
    """The entries laid out last, for the other lanes that hold them. Two generations, each bounded in bytes."""

    def __init__(self, limit: int = LAID_OUT_BYTES) -> None:
        self._limit = limit
        self._bytes = 0
        self._young: dict[tuple[ContentMode, Partition, int], Laid] = {}
        self._old: dict[tuple[ContentMode, Partition, int], Laid] = {}

    def known(self, mode: ContentMode, partition: Partition, offsets: Iterable[int]) -> tuple[dict[int, Laid], list[int]]:
        """What is remembered of these offsets, and which are not."""
        found, missing = {}, []
        for offset in offsets:
            key = (mode, partition, offset)
            laid = self._young.get(key) or self._old.get(key)
            if laid is None:
                missing.append(offset)
            else:
                found[offset] = laid
        return found, missing

    def keep(self, mode: ContentMode, partition: Partition, offset: int, laid: Laid) -> None:
        self._young[mode, partition, offset] = laid
        self._bytes += len(laid[1]) + 1024
        if self._bytes > self._limit:
            self._old, self._young, self._bytes = self._young, {}, 0
