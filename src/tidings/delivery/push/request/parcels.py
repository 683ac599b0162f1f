"""From lane entries to parcels: each entry laid out once for a format, with what a policy adds."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence

from tidings.clock import SECOND, Instant
from tidings.delivery.push.lane.entries import EXPIRED, Item, Parcel
from tidings.delivery.push.policy.policy import Policy
from tidings.delivery.push.request.formats import Laid, laid_out
from tidings.delivery.push.store import DeliveryStore
from tidings.ids import DeliveryIds
from tidings.lanes.port import LaneEntry, LanePage, Lanes, Mark, PageLimit, StoredEntry
from tidings.log.position import LaneNumber, Position
from tidings.registry.rules.retention import NEVER, RetentionPeriod


class Parcels:
    """Reads entries of lanes and lays them out."""

    def __init__(self, lanes: Lanes, store: DeliveryStore, ids: DeliveryIds) -> None:
        self._lanes = lanes
        self._store = store
        self._id_text = ids.text_of

    async def after(self, lane: LaneNumber, policy: Policy, after: Mark, limit: PageLimit) -> tuple[LanePage, Sequence[Parcel]]:
        """The next entries of a lane, as they were read and as they are sent."""
        page = await self._lanes.read(lane, after, limit)
        return page, self._laid_out(lane, policy, page.entries)

    async def beyond(self, lane: LaneNumber, policy: Policy, position: Position, limit: PageLimit) -> Sequence[Parcel]:
        """The next entries of a lane after a position."""
        found = await self._lanes.find(lane, position)
        _, parcels = await self.after(lane, policy, found.mark, limit)
        return parcels

    async def of(self, lane: LaneNumber, policy: Policy, items: Sequence[Item]) -> Sequence[Parcel]:
        """The parcels of open items. One that left the log may have its copy as a dead letter, if it is sent again."""
        marks = [Mark(item.number, item.position) for item in items]
        entries = await self._lanes.fetch(lane, marks)
        gone = [item.position for item, entry in zip(items, entries, strict=True) if item.again and entry.stored is None]
        # With a retention of its own, what left the log counts no more, nor does its copy (HOR-159).
        if gone and not policy.kept.own:
            letters = await asyncio.to_thread(self._store.buried, lane, gone)
            copies = {position: StoredEntry(Instant(0), 0, letter.head, letter.data) for position, letter in letters.items()}
            entries = [entry._replace(stored=entry.stored or copies.get(entry.position)) for entry in entries]
        return self._laid_out(lane, policy, entries)

    def _laid_out(self, lane: LaneNumber, policy: Policy, entries: Sequence[LaneEntry]) -> list[Parcel]:
        own, form, id_text = policy.headers, policy.format, self._id_text
        ends_at, shared, has_own = _ending(policy.kept), form.key, form.has_own
        parcels = []
        for number, position, stored in entries:
            named = id_text(lane, *position)
            if stored is None:
                parcels.append(Parcel(number, position, {"tidings-delivery-id": named}, b"", EXPIRED))
                continue
            laid: Laid | None = stored.forms.get(shared)
            if laid is None:
                laid = laid_out(form, stored)
            if has_own and not laid.fault:
                laid = form.own(laid, stored, named)
            # What became a dead letter and left the log has its copy for as long as the copy lasts.
            ends = ends_at(position, stored.at) if stored.at else NEVER
            headers = {**own, **laid.headers, "tidings-delivery-id": named}
            parcels.append(Parcel(number, position, headers, laid.body, laid.fault, stored.at, stored.key_hash, ends, stored))
        return parcels


def _ending(kept: RetentionPeriod) -> Callable[[Position, Instant], Instant]:
    """When entries end, by where they are and when they were published. It is asked for every delivery."""
    if kept.former:
        return kept.until
    if math.isinf(kept.seconds):
        return lambda position, published: NEVER
    life = round(kept.seconds * SECOND)
    return lambda position, published: Instant(published + life)
