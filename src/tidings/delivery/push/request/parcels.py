"""From lane entries to parcels: each entry laid out once for a format, with what a policy adds."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence

from tidings.clock import SECOND, Instant
from tidings.delivery.push.lane.entries import EXPIRED, Item, Parcel
from tidings.delivery.push.policy.policy import Policy
from tidings.delivery.push.request.formats import Laid, laid_out
from tidings.delivery.push.store import DeliveryStore, LaneKey
from tidings.ids import DeliveryIds
from tidings.lanes.port import LaneEntry, LanePage, Lanes, Mark, PageLimit, StoredEntry
from tidings.log.position import Offset, Partition, Position
from tidings.registry.rules.retention import NEVER, RetentionPeriod


class Parcels:
    """Reads entries of lanes and lays them out."""

    def __init__(self, lanes: Lanes, store: DeliveryStore, ids: DeliveryIds) -> None:
        self._lanes = lanes
        self._store = store
        self._id_text = ids.text_of

    async def after(self, key: LaneKey, policy: Policy, after: Mark, limit: PageLimit) -> tuple[LanePage, Sequence[Parcel]]:
        """The next entries of a lane, as they were read and as they are sent."""
        page = await self._lanes.read(key.lane, after, limit)
        return page, self._laid_out(key, policy, page.entries)

    async def beyond(self, key: LaneKey, policy: Policy, position: Position, limit: PageLimit) -> Sequence[Parcel]:
        """The next entries of a lane after a position."""
        found = await self._lanes.find(key.lane, position)
        _, parcels = await self.after(key, policy, found.mark, limit)
        return parcels

    async def of(self, key: LaneKey, policy: Policy, items: Sequence[Item]) -> Sequence[Parcel]:
        """The parcels of open items. One that left the log may have its copy as a dead letter, if it is sent again."""
        marks = [Mark(item.number, Position(key.partition, item.offset)) for item in items]
        entries = await self._lanes.fetch(key.lane, marks)
        gone = [item.offset for item, entry in zip(items, entries, strict=True) if item.again and entry.stored is None]
        # With a retention of its own, what left the log counts no more, nor does its copy (HOR-159).
        if gone and not policy.kept.own:
            letters = await asyncio.to_thread(self._store.buried, key, gone)
            copies = {offset: StoredEntry(Instant(0), 0, letter.head, letter.data) for offset, letter in letters.items()}
            entries = [entry._replace(stored=entry.stored or copies.get(entry.position.offset)) for entry in entries]
        return self._laid_out(key, policy, entries)

    def _laid_out(self, key: LaneKey, policy: Policy, entries: Sequence[LaneEntry]) -> list[Parcel]:
        own, form, (lane, partition), id_text = policy.headers, policy.format, key, self._id_text
        ends_at, shared, has_own = _ending(policy.kept), form.key, form.has_own
        parcels = []
        for number, (_, offset), stored in entries:
            named = id_text(lane, partition, offset)
            if stored is None:
                parcels.append(Parcel(number, offset, {"tidings-delivery-id": named}, b"", EXPIRED))
                continue
            laid: Laid | None = stored.forms.get(shared)
            if laid is None:
                laid = laid_out(form, stored)
            if has_own and not laid.fault:
                laid = form.own(laid, stored, named)
            # What became a dead letter and left the log has its copy for as long as the copy lasts.
            ends = ends_at(partition, offset, stored.at) if stored.at else NEVER
            headers = {**own, **laid.headers, "tidings-delivery-id": named}
            parcels.append(Parcel(number, offset, headers, laid.body, laid.fault, stored.at, stored.key_hash, ends, stored))
        return parcels


def _ending(kept: RetentionPeriod) -> Callable[[Partition, Offset, Instant], Instant]:
    """When entries end, by where they are and when they were published. It is asked for every delivery."""
    if kept.former:
        return lambda partition, offset, published: kept.until(Position(partition, offset), published)
    if math.isinf(kept.seconds):
        return lambda partition, offset, published: NEVER
    life = round(kept.seconds * SECOND)
    return lambda partition, offset, published: Instant(published + life)
