"""Where each partition is read from, and what has to be remembered before (FCL-10 to FCL-15). Pure.

A partition goes on from, in this order: its own saved cursor; the cursor of an ancestor whose cursors are valid on it; the very
beginning, when it follows another partition or appeared later; `start`, when nothing was ever read of this feed.

`finished` counts while the partition is closed or gone. One that is listed as open can grow again, whatever was kept of it: its hub
went back to a backup, or its topic was deleted and made anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidings.client.feeds.discovery import Discovery, Partition
from tidings.client.feeds.store import StoredCursor

FIRST = "_first"
LAST = "_last"


@dataclass(frozen=True, slots=True)
class PartitionStart:
    """One partition to read from `cursor` on, and the one that must be finished before, if any."""

    partition: Partition
    cursor: str
    after: str | None = None


@dataclass(frozen=True, slots=True)
class StartPlan:
    """What to read, and the rows to save in one transaction before anything is read."""

    places: tuple[PartitionStart, ...]
    saves: Mapping[str, StoredCursor]


def plan(discovery: Discovery, kept: Mapping[str, StoredCursor], start: str = FIRST, *, ordered: bool = True) -> StartPlan:
    """How to go on with these partitions, given what was kept of the feed."""
    known = dict(kept)
    for partition in discovery.partitions:
        if partition.id in kept and kept[partition.id].finished and not partition.closed:
            known[partition.id] = _reopened(kept[partition.id])
        elif partition.id not in known:
            known |= _beginning(partition, discovery, kept, start)
    places = tuple(
        PartitionStart(
            one, known[one.id].cursor if one.id in known else FIRST, _waits_for(one, discovery, known) if ordered else None
        )
        for one in discovery.partitions
        if one.id not in known or not known[one.id].finished
    )
    return StartPlan(places, {id: row for id, row in known.items() if kept.get(id) != row})


def _reopened(row: StoredCursor) -> StoredCursor:
    """Go on where it ended. Nobody knows where `_last` was, and asking for it now would pass over what came since."""
    return StoredCursor(FIRST if row.cursor == LAST else row.cursor)


def _beginning(
    partition: Partition, discovery: Discovery, kept: Mapping[str, StoredCursor], start: str
) -> dict[str, StoredCursor]:
    """The rows that a partition without one gets. None for a child that waits: its first cursor is saved when it has begun."""
    if (heir_of := inherited(partition, kept)) is not None:
        # The ancestors live on in their children. Finished, they are not taken for unread when the next split comes.
        gone = {
            id: StoredCursor(kept[id].cursor, finished=True)
            for id in partition.cursors_of
            if id in kept and discovery.get(id) is None
        }
        return {partition.id: StoredCursor(kept[heir_of].cursor), **gone}
    if kept:
        return {} if partition.after is not None else {partition.id: StoredCursor(FIRST)}
    if start == LAST:
        return {partition.id: StoredCursor(LAST, finished=partition.closed)}
    return {} if partition.after is not None else {partition.id: StoredCursor(start)}


def inherited(partition: Partition, kept: Mapping[str, StoredCursor]) -> str | None:
    """The ancestor whose cursor is taken over: the nearest that has one, unless a farther one was not read to its end (FCL-12)."""
    with_cursor = [id for id in partition.cursors_of if id in kept]
    if not with_cursor:
        return None
    unread = [id for id in with_cursor[1:] if not kept[id].finished]
    return unread[-1] if unread else with_cursor[0]


def _waits_for(partition: Partition, discovery: Discovery, known: Mapping[str, StoredCursor]) -> str | None:
    parent = discovery.get(partition.after) if partition.after is not None and partition.after != partition.id else None
    if parent is None or not parent.closed or (parent.id in known and known[parent.id].finished):
        return None
    return parent.id
