"""Lanes of the embedded hub: blocks of offsets, projected bodies and the log's entries, joined.

An entry's number is how many the lane has had before its block, plus its place in the block. Places are found by offset.

Sending a whole event where a part was granted would be worse than sending nothing, so an entry whose key or body is not to be
had counts as gone.
"""

from __future__ import annotations

import asyncio
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from tidings.events.stored import without_reference
from tidings.lanes.parts import KEY_BYTES, WHOLE
from tidings.lanes.port import Backlog, FoundEntry, LaneEntry, LanePage, Mark, PageLimit, StoredEntry, Touched
from tidings.lanes.sink import Aside, Filling, PartKey
from tidings.lanes.sqlite.block import Block, LaneBegin, offsets_of
from tidings.lanes.sqlite.reader import SqliteLanesReader
from tidings.log.port import LogReader
from tidings.log.position import EMBEDDED, START, LaneNumber, Marks, Offset, Position

CACHE_BYTES = 4 << 20
OVERHEAD = 1024
"""About how many bytes an entry takes in the cache beside its payload."""

Content = tuple[int, bytes]
"""Offset and key: which bytes an entry stands for."""


class EmbeddedLanes:
    """Implements Lanes and LaneIndex. What one lane had read, the next one with the same entries need not."""

    def __init__(self, lanes: SqliteLanesReader, log: LogReader) -> None:
        self._lanes = lanes
        self._log = log
        self._cache = Cache()
        self._blocks = LastBlocks()

    async def read(self, lane: LaneNumber, after: Mark, limit: PageLimit) -> LanePage:
        block = self._around(lane, after.position.offset) or self._block_after(lane, after.position.offset)
        if block is None:
            total = self._lanes.total(lane, EMBEDDED)
            # Either everything was read, or the rest is gone, or a block has come just now.
            block = self._block_after(lane, after.position.offset) if total != after.number else None
            if block is None:
                return _page(total, (), self._lanes.begin(lane, EMBEDDED))
        offsets = self._blocks.offsets(block)
        begin = bisect_right(offsets, after.position.offset)
        chosen = offsets[begin : begin + limit.entries]
        if block.keys is None:
            wanted = [(offset, WHOLE) for offset in chosen]
        else:
            wanted = [(offset, _key(block, begin + n)) for n, offset in enumerate(chosen)]
        entries = self._joined(wanted, block.before + begin + 1)
        return _page(block.before + begin, entries[: _fitting(entries, limit.bytes)], block.begin)

    async def fetch(self, lane: LaneNumber, marks: Sequence[Mark]) -> Sequence[LaneEntry]:
        keys = self._keys(lane, [mark.position.offset for mark in marks])
        there = self._contents([(offset, key) for offset, key in keys.items()])
        found = {offset: there[offset, key] for offset, key in keys.items() if (offset, key) in there}
        return [LaneEntry(mark.number, mark.position, found.get(mark.position.offset)) for mark in marks]

    async def find(self, lane: LaneNumber, place: Position | Marks) -> FoundEntry:
        position = place if isinstance(place, Position) else Position(EMBEDDED, place.get(EMBEDDED, START))
        if position.partition != EMBEDDED:
            return FoundEntry(Mark(0, position), False)
        # The total first: what is written meanwhile is then found as a block.
        total = self._lanes.total(lane, EMBEDDED)
        block = self._block_after(lane, Offset(position.offset - 1))
        if block is None:
            return FoundEntry(Mark(total, position), False)
        offsets = offsets_of(block)
        at = bisect_right(offsets, position.offset)
        return FoundEntry(Mark(block.before + at, position), at > 0 and offsets[at - 1] == position.offset)

    async def end(self, lane: LaneNumber) -> Mark:
        # Routed first: entries up to there are all in the lane, and are counted.
        routed = self._lanes.routed().get(EMBEDDED, START)
        filling = self._lanes.fillings().get(lane)
        if filling is not None and not filling.done:
            routed = filling.reached.get(EMBEDDED, START)
        return (await self.find(lane, Position(EMBEDDED, routed))).mark

    async def work(self, since: int) -> Touched:
        return self._lanes.touched(since)

    async def routed(self) -> Marks:
        return self._lanes.routed()

    async def fillings(self) -> Mapping[LaneNumber, Filling]:
        return self._lanes.fillings()

    def _around(self, lane: LaneNumber, offset: Offset) -> Block | None:
        """The block that was read last, if the lane was not filled anew since."""
        block = self._blocks.around(lane, offset)
        return block if block is None or block.begin == self._lanes.begin(lane, EMBEDDED) else None

    async def newest(self, lane: LaneNumber, upto: Mark, limit: int) -> Sequence[Mark]:
        found: list[Mark] = []
        offset = upto.position.offset
        for block in self._lanes.blocks_back(lane, offset, EMBEDDED, limit):
            offsets = offsets_of(block)
            for at in range(bisect_right(offsets, offset) - 1, -1, -1):
                found.append(Mark(block.before + at + 1, Position(EMBEDDED, Offset(offsets[at]))))
                if len(found) == limit:
                    return found
        return found

    async def backlogs(self, after: Mapping[LaneNumber, Mark]) -> Mapping[LaneNumber, Backlog]:
        return await asyncio.to_thread(
            lambda: {lane: self._backlog(lane, mark.position.offset) for lane, mark in after.items()}
        )

    def _backlog(self, lane: LaneNumber, after: Offset) -> Backlog:
        count, block = self._lanes.backlog(lane, after, EMBEDDED)
        if block is None:
            return Backlog(0, None)
        offsets = offsets_of(block)
        return Backlog(count, Position(EMBEDDED, Offset(offsets[bisect_right(offsets, after)])))

    async def asides(self, after: Position | None, limit: int) -> Sequence[Aside]:
        return self._lanes.asides(after, limit)

    def _block_after(self, lane: LaneNumber, after: Offset) -> Block | None:
        return next(iter(self._lanes.blocks(lane, after, EMBEDDED, 1)), None)

    def _keys(self, lane: LaneNumber, offsets: Sequence[Offset]) -> Mapping[int, bytes]:
        """The keys of the lane's entries at these offsets; WHOLE for the event as it is in the log."""
        found: dict[int, bytes] = {}
        block: Block | None = None
        for offset in sorted(set(offsets)):
            if block is None or offset > block.last:
                block = self._block_after(lane, Offset(offset - 1))
                if block is None:
                    break
                there = offsets_of(block)
            at = bisect_left(there, offset)
            if at < len(there) and there[at] == offset:
                found[offset] = _key(block, at)
        return found

    def _joined(self, wanted: Sequence[Content], number: int) -> list[LaneEntry]:
        found = self._contents(wanted)
        return [
            LaneEntry(number + n, Position(EMBEDDED, Offset(content[0])), found.get(content))
            for n, content in enumerate(wanted)
        ]

    def _contents(self, wanted: Sequence[Content]) -> Mapping[Content, StoredEntry]:
        """What is to be sent of these; one that is gone is missing from the answer."""
        cached = self._cache.now()
        missing = [content for content in wanted if content not in cached]
        if missing:
            positions = [Position(EMBEDDED, Offset(offset)) for offset, _ in missing]
            entries = self._log.fetch(positions)
            bodies = self._bodies(missing)
            for content, position in zip(missing, positions, strict=True):
                entry = entries.get(position)
                projected = content[1] != WHOLE
                if entry is not None and (not projected or content in bodies):
                    # The head of a part does not say where the whole is.
                    head, data = (without_reference(entry.head), bodies[content]) if projected else (entry.head, entry.data)
                    self._cache.add(content, StoredEntry(entry.at, entry.key_hash, head, data, {}))
        return cached

    def _bodies(self, contents: Iterable[Content]) -> Mapping[Content, bytes]:
        keys = [PartKey(Position(EMBEDDED, Offset(offset)), key) for offset, key in contents if key != WHOLE]
        if not keys:
            return {}
        return {(key.position.offset, key.key): body for key, body in self._lanes.bodies(keys).items()}


class LastBlocks:
    """The block that each lane was read from last: a lane is read on in the same block many times. Blocks never change."""

    def __init__(self, limit: int = CACHE_BYTES) -> None:
        self._limit = limit
        self._kept: dict[LaneNumber, tuple[Block, array[int]]] = {}
        self._bytes = 0

    def around(self, lane: LaneNumber, offset: Offset) -> Block | None:
        """The block that holds what comes before and after an offset, if it is the last one that was read."""
        block, _ = self._kept.get(lane, (None, None))
        return block if block is not None and block.first <= offset < block.last else None

    def offsets(self, block: Block) -> array[int]:
        """Its offsets; it is the lane's last one from now on."""
        known, offsets = self._kept.get(block.lane, (None, None))
        if known is not block or offsets is None:
            if self._bytes > self._limit:
                self._kept, self._bytes = {}, 0
            offsets = offsets_of(block)
            self._kept[block.lane] = block, offsets
            self._bytes += 2 * len(block.offsets) + len(block.keys or b"") + OVERHEAD
        return offsets


class Cache:
    """The entries read last, for the other lanes that hold them; forgotten together when they are too many bytes."""

    def __init__(self, limit: int = CACHE_BYTES) -> None:
        self._limit = limit
        self._kept: dict[Content, StoredEntry] = {}
        self._bytes = 0

    def now(self) -> Mapping[Content, StoredEntry]:
        """What is remembered, and what is added before the next call."""
        if self._bytes > self._limit:
            self._kept, self._bytes = {}, 0
        return self._kept

    def add(self, content: Content, stored: StoredEntry) -> None:
        self._kept[content] = stored
        self._bytes += OVERHEAD + len(stored.head) + len(stored.data or b"")


def _page(before: int, entries: Sequence[LaneEntry], begin: LaneBegin | None) -> LanePage:
    if begin is None:
        return LanePage(before, entries)
    return LanePage(before, entries, begin.filling, Mark(begin.number, Position(EMBEDDED, begin.offset)))


def _key(block: Block, at: int) -> bytes:
    return WHOLE if block.keys is None else block.keys[at * KEY_BYTES : (at + 1) * KEY_BYTES]


def _fitting(entries: Sequence[LaneEntry], most: int) -> int:
    """How many of these, at least one, are a page by their bytes."""
    sizes = accumulate(len(entry.stored.data or b"") if entry.stored is not None else 0 for entry in entries)
    return next((count for count, size in enumerate(sizes, start=1) if size >= most), len(entries))
