"""From lane entries to parcels: offsets from the lane, entries from the log in pages, each laid out once for a content mode.

Reads are small and happen on the event loop: handing a page of rows through a thread costs more than reading it.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence

from tidings.clock import SECOND, Instant
from tidings.delivery.push.lane import Item
from tidings.delivery.push.layouts import Form, Laid, OwnForm, data_address, lay_out, with_address
from tidings.delivery.push.pushing import EXPIRED, Parcel, PushLane
from tidings.delivery.push.store import DeliveryStore, position_of
from tidings.delivery.push.stripped import LaneEntry, Stripped, entries_of, entries_with, references
from tidings.errors import LogUnavailable
from tidings.ids import DeliveryIds
from tidings.log.block import DIGEST, offsets_of
from tidings.log.port import Block, LanesReader, LogReader
from tidings.log.position import Offset, Partition, Position
from tidings.registry.rules.retentions import NEVER, Kept

PAGE_ENTRIES = 200
LAST_ENTRIES = 8
AHEAD = 2048
PAGE_BYTES = 1 << 20
"""Bytes of bodies that a lane holds ready, about: there may be thousands of lanes with large events."""
LAID_OUT_BYTES = 4 << 20


Missed = Callable[[PushLane, int, Offset | None], None]
"""Told when a lane has lost that many entries before they were read, before the given one or all there were."""


class Reading:
    """Fills lanes with parcels. What one subscription had laid out, the next one with the same mode need not."""

    def __init__(
        self, lanes: LanesReader, log: LogReader, store: DeliveryStore, ids: DeliveryIds, missed: Missed, hub: str = ""
    ) -> None:
        self._hub = hub
        self._lanes = lanes
        self._log = log
        self._store = store
        self._id_text = ids.text_of
        self._missed = missed
        self._laid = LaidOut()
        self._stripped = Stripped(lanes)

    def fill(self, lane: PushLane) -> bool:
        """Read the next live entries of a lane into `ready`. False: there are none now."""
        if not lane.ahead and not self._look_ahead(lane):
            lane.more = False
            return False
        # A lane with a small window needs no long page: memory is shared by all lanes.
        size = min(PAGE_ENTRIES, max(LAST_ENTRIES, int(lane.window) * 2), max(1, lane.state.room))
        offsets = lane.ahead[:size]
        if not offsets:
            return True
        digests = lane.ahead_digests
        wanted = references(offsets) if digests is None else entries_with(offsets, digests)
        parcels = self._parcels(lane, wanted, kept=False)
        size = _fitting(parcels)
        lane.ready.extend(parcels[:size])
        # Only now: had the log not been readable, they would be passed over.
        del lane.ahead[:size]
        lane.ahead_digests = None if digests is None else digests[size * DIGEST :]
        return True

    def fill_back(self, lane: PushLane) -> bool:
        """Read the next entries of the back window into `back_ready`. False: there are none any more."""
        back = lane.state.back
        assert back is not None
        for after, until in back.ranges():
            found = self.between(lane, after, until)
            if found:
                lane.back_ready.extend(found)
                return True
        return False

    def between(self, lane: PushLane, after: Offset, until: Offset) -> list[Parcel]:
        """The next few entries after `after` and up to `until`, whatever became of them. None: there are none any more."""
        block = next(iter(self._lanes.blocks(lane.key.lane, after, lane.key.partition, 1)), None)
        found = [entry for entry in entries_of(block) if after < entry.offset <= until] if block is not None else []
        return self._parcels(lane, found[:LAST_ENTRIES], kept=False)

    def load(self, lane: PushLane) -> None:
        """Read a page of the due items of a lane into `loaded`."""
        items: list[Item] = []
        while lane.due and len(items) < LAST_ENTRIES * 4:
            item = lane.due.popleft()
            if lane.state.holds(item) and not item.sending:
                items.append(item)
        again = any(item.again for item in items)
        try:
            wanted = self._stripped.entries(lane.key, [item.offset for item in items])
            parcels = self._parcels(lane, wanted, kept=again)
        except LogUnavailable:
            lane.due.extendleft(reversed(items))
            raise
        lane.loaded.extend(zip(items, parcels, strict=True))

    def contains(self, lane: PushLane, offset: Offset) -> bool:
        """Whether the lane has this entry."""
        blocks = self._lanes.blocks(lane.key.lane, Offset(offset - 1), lane.key.partition, 1)
        return any(offset in offsets_of(block) for block in blocks)

    def place(self, lane: PushLane) -> None:
        """The cursor was moved: learn how many entries of the lane are before it."""
        # The total first: what is written meanwhile is then found as a block.
        total = self._lanes.total(*lane.key)
        block = self._next_block(lane)
        lane.state.reach(total if block is None else block.before + bisect_right(offsets_of(block), lane.read))

    def _next_block(self, lane: PushLane) -> Block | None:
        return next(iter(self._lanes.blocks(lane.key.lane, Offset(lane.read), lane.key.partition, 1)), None)

    def _look_ahead(self, lane: PushLane) -> bool:
        """Read on after the last entry that was taken: `ready` and `ahead` are empty, so `read` is the cursor."""
        block = self._next_block(lane)
        if block is None:
            block = self._at_the_end(lane)
        if block is not None:
            offsets = offsets_of(block)
            begin = bisect_right(offsets, lane.read)
            ahead = offsets[begin : begin + AHEAD]
            self._reach(lane, block.before + begin, Offset(ahead[0]))
            lane.read = ahead[-1]
            lane.ahead = ahead
            lane.ahead_digests = None if block.digests is None else block.digests[begin * DIGEST : (begin + AHEAD) * DIGEST]
        return bool(lane.ahead)

    def _at_the_end(self, lane: PushLane) -> Block | None:
        """No block follows: either everything was taken, or the rest is gone, or a block has come just now."""
        total = self._lanes.total(*lane.key)
        if total <= lane.state.taken:
            return None
        block = self._next_block(lane)
        if block is None:
            self._reach(lane, total, None)
        return block

    def _reach(self, lane: PushLane, before: int, end: Offset | None) -> None:
        missed = lane.state.reach(before)
        if missed:
            self._missed(lane, missed, end)

    def _parcels(self, lane: PushLane, wanted: Sequence[LaneEntry], *, kept: bool) -> list[Parcel]:
        """A parcel for every entry. `kept`: an entry that left the log may still have its copy as a dead letter."""
        policy = lane.policy
        assert policy is not None
        own, (number, partition), id_text = policy.headers, lane.key, self._id_text
        ends_at, referring = _ending(policy.kept), policy.mode is OwnForm.HORIZON_REFERENCE
        parcels = []
        laid = self._lay_out(lane, policy.mode, wanted, kept)
        for (offset, _), (headers, body, fault, published, line) in zip(wanted, laid, strict=True):
            named = id_text(number, partition, offset)
            if referring and policy.layout is not None:
                body = with_address(body, data_address(self._hub, policy.layout) + named)
            # What became a dead letter and left the log has its copy for as long as the copy lasts.
            ends = ends_at(partition, offset, published) if published else NEVER
            all_headers = {**own, **headers, "tidings-delivery-id": named}
            parcels.append(Parcel(offset, all_headers, body, fault, published, line, ends))
        return parcels

    def _lay_out(self, lane: PushLane, mode: Form, wanted: Sequence[LaneEntry], kept: bool) -> Sequence[Laid]:
        laid = self._laid.of(mode, lane.key.partition)
        missing = [entry for entry in wanted if entry not in laid]
        if not missing:
            return [laid[entry] for entry in wanted]
        found = self._log.fetch([position_of(lane.key, offset) for offset, _ in missing])
        for entry, stored, data in self._stripped.payloads(lane.key, missing, found):
            headers, body, fault, _, _ = lay_out(mode, stored.head, data)
            laid[entry] = Laid(headers, body, fault, stored.at, stored.key_hash)
            self._laid.bytes += len(body) + 1024
        gone = [entry for entry in missing if entry not in laid]
        if gone:
            # Not remembered for other lanes: a copy is this lane's own.
            laid = {**laid, **self._gone(lane, mode, gone, kept)}
        return [laid[entry] for entry in wanted]

    def _gone(self, lane: PushLane, mode: Form, wanted: Sequence[LaneEntry], kept: bool) -> Mapping[LaneEntry, Laid]:
        """What is left of entries that retention removed: the copy of a dead letter, or the fault."""
        # With a retention of its own, what left the log counts no more, nor does its copy (HOR-159).
        kept = kept and lane.policy is not None and not lane.policy.kept.own
        letters = self._store.buried(lane.key, [entry.offset for entry in wanted]) if kept else {}
        copies = [(entry, letters.get(entry.offset)) for entry in wanted]
        return {entry: Laid({}, b"", EXPIRED) if one is None else lay_out(mode, one.head, one.data) for entry, one in copies}


def _fitting(parcels: Sequence[Parcel]) -> int:
    """How many of these, at least one, are a page by their bytes."""
    size = 0
    for count, parcel in enumerate(parcels, start=1):
        size += len(parcel.body)
        if size >= PAGE_BYTES:
            return count
    return len(parcels)


def _ending(kept: Kept) -> Callable[[Partition, Offset, Instant], Instant]:
    """When entries end, by where they are and when they were published. It is asked for every delivery."""
    if kept.former:
        return lambda partition, offset, published: kept.until(Position(partition, offset), published)
    if math.isinf(kept.seconds):
        return lambda partition, offset, published: NEVER
    life = round(kept.seconds * SECOND)
    return lambda partition, offset, published: Instant(published + life)


class LaidOut:
    """The entries laid out last, for the other lanes that hold them; forgotten together when they are too many bytes."""

    def __init__(self, limit: int = LAID_OUT_BYTES) -> None:
        self._limit = limit
        self._kept: dict[tuple[Form, Partition], dict[LaneEntry, Laid]] = {}
        self.bytes = 0

    def of(self, mode: Form, partition: Partition) -> dict[LaneEntry, Laid]:
        """What is remembered, by entry. The caller adds to it and to `bytes`."""
        if self.bytes > self._limit:
            self._kept, self.bytes = {}, 0
        return self._kept.setdefault((mode, partition), {})
