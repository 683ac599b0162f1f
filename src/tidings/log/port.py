"""The ports of the log: who appends, who reads, who writes lanes, who reads lanes.

A process has at most one writer of each kind and any number of readers. Every method says what holds when it returns.
docs/decisions/002-log-port.md maps each method to Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

import msgspec

from tidings.clock import Instant
from tidings.log.position import Marks, Offset, Position, TopicNumber

T = TypeVar("T")


class Draft(msgspec.Struct, frozen=True, gc=False):
    """What is to be appended. `head` is the stored form of the event's attributes (tidings.events.stored)."""

    topic: TopicNumber
    at: Instant
    key_hash: int
    head: bytes
    data: bytes | None


class Entry(msgspec.Struct, frozen=True, gc=False):
    """What was appended."""

    position: Position
    topic: TopicNumber
    at: Instant
    key_hash: int
    head: bytes
    data: bytes | None


class Page(msgspec.Struct, frozen=True, gc=False):
    """Some entries in order, and how far the reading came: the next read goes on after `reached`."""

    entries: Sequence[Entry]
    reached: Marks


class Limit(msgspec.Struct, frozen=True, gc=False):
    """How much one read may return. At least one entry is always returned, however large it is."""

    entries: int = 1000
    bytes: int = 4 << 20


class Between(NamedTuple):
    """What lies above some marks and at or below others."""

    above: Marks
    upto: Marks


class Stretch(NamedTuple):
    """Some events in a row: about how many, and when the first was published."""

    events: int
    oldest: Instant | None


class Retention(msgspec.Struct, frozen=True, gc=False):
    """Entries of a topic published before `before` may go."""

    topic: TopicNumber
    before: Instant


class LogWriter(Protocol):
    """The appending side. One per log; opening a second one on the same files raises DataFolderUnusable."""

    async def append(self, drafts: Sequence[Draft]) -> Sequence[Position]:
        """Append all or none; durable (fsynced) when it returns, and visible to every reader.

        Called concurrently: callers that wait at the same time share a commit. Calling twice appends twice.
        Positions of one partition rise in the order of `drafts`. Raises LogUnavailable (disk full, read-only, closed: nothing
        of it is kept) and Overloaded (more is waiting than may be held in memory).
        """

    async def fence(self, settle: Callable[[Marks], T]) -> T:
        """Run `settle(marks)` at one point of the log and return its result.

        Every append acknowledged before this call is at or below `marks`; every append begun after it returned is above.
        Embedded: runs on the writer's thread between two commits, so `settle` must be short and may commit to another database.
        On Kafka the caller has stored its change as pending before; `settle` stamps it. An exception of `settle` is raised here.
        """

    async def trim(self, retentions: Sequence[Retention], routed: Marks) -> int:
        """Remove what is past its retention and at or below `routed`, in small slices between commits; how many went.

        Never stalls appends for longer than a slice. Safe to call again at any time.
        """

    def busy(self) -> bool:
        """Whether appends wait for their commit just now. Very cheap: who reads much on the same event loop lets them pass."""

    def refusal(self) -> str | None:
        """Why appends are refused now; None while they are taken. Very cheap: asked for every health check, from any thread.

        Known from the last append and what the writer watches anyway. After a failure it finds out by itself when appends work
        again, also when nobody appends meanwhile.
        """

    async def close(self) -> None:
        """Commit what waits, refuse what comes, release the files. Safe to call twice."""


class LogReader(Protocol):
    """The reading side; any number, in any process. No call holds a read transaction after it returned."""

    def read(self, topic: TopicNumber, after: Marks, limit: Limit) -> Page:
        """The next entries of one topic after `after`, in order, without looking at other topics' entries."""

    def scan(self, after: Marks, upto: Marks, limit: Limit) -> Page:
        """The next entries of all topics after `after` and at or below `upto` (the commands stream left out)."""

    def fetch(self, positions: Sequence[Position]) -> Mapping[Position, Entry]:
        """The entries at these positions; one that was removed is missing from the answer."""

    def ends(self) -> Marks:
        """The position of the newest entry of every partition. Cheap: called for every step of routing."""

    def count(self, after: Marks, upto: Marks) -> int:
        """How many entries of all topics are after `after` and at or below `upto`, commands left out. Cheap, however many.

        Exact where nothing in between was ever removed; else it may be too many.
        """

    def removed(self, topic: TopicNumber) -> Marks:
        """Entries of this topic at or below these marks may have been removed; a cursor below them has expired."""

    def close(self) -> None:
        """Release the files. Safe to call twice."""


class EventLog(Protocol):
    """The events of all topics, as whoever answers requests reads them. Raises LogUnavailable. Every call may be repeated."""

    async def read(self, topic: TopicNumber, after: Marks, limit: Limit) -> Page:
        """The next entries of one topic after `after`, in order, without looking at other topics' entries."""

    async def newest(self, topic: TopicNumber, between: Between, limit: Limit) -> Sequence[Entry]:
        """The last entries of one topic between marks, newest first. None: there are no more."""

    async def fetch(self, positions: Sequence[Position]) -> Mapping[Position, Entry]:
        """The entries at these positions; one that was removed is missing from the answer."""

    async def ends(self) -> Marks:
        """The position of the newest entry of every partition. Cheap."""

    async def before(self, instant: Instant) -> Marks:
        """How far the log was just before the first entry of this time or later."""

    async def stretch(self, between: Between) -> Stretch:
        """How many events of all topics lie between marks, and when the first of them was published. Cheap, however many."""

    async def removed(self, topic: TopicNumber) -> Marks:
        """Entries of this topic at or below these marks may have been removed; a cursor below them has expired."""


class Remains(Protocol):
    """What is left of the log, for who keeps copies of its entries and must not keep them longer."""

    def removals(self) -> Mapping[TopicNumber, Marks]:
        """The `removed` marks of all topics that have lost something, the commands stream among them."""

    def remaining(self, positions: Sequence[Position]) -> frozenset[Position]:
        """Those of these positions whose entries are still there. Reads none of the entries."""


Row: TypeAlias = tuple[Offset, int, bytes, bytes | None, int]
"""Offset, key hash, head, data and size of an entry: plain, because feeds read very many."""


class Extent(NamedTuple):
    """From where to where a topic's entries lie: those at or below `removed` may be gone, none is above `last`."""

    removed: Offset
    last: Offset


class Share(NamedTuple):
    """The entries whose key hash modulo `modulus` is one of `residues`; no residues: all entries."""

    modulus: int = 1
    residues: tuple[int, ...] = ()


class Slice(NamedTuple):
    """Some rows in order. Everything of the share up to `reached` is in it; `overtaken`: unless it was removed meanwhile.

    `texts`: where others may leave what they have made of it, when it is shared.
    """

    rows: Sequence[Row]
    reached: Offset
    overtaken: bool = False
    texts: dict[object, tuple[bytes, int]] | None = None


class TopicSlices(Protocol):
    """Reading topics for feeds. Every call takes a millisecond or two at the most, so that it may run on the event loop."""

    def extent(self, topic: TopicNumber) -> Extent:
        """Where the topic begins and ends now."""

    def slice(self, topic: TopicNumber, after: Offset, upto: Offset, share: Share, limit: Limit) -> Slice:
        """The next entries of the share after `after` and at or below `upto`. It may end early, even with no row at all."""

    def newest(self, topic: TopicNumber, after: Offset, most: int) -> Sequence[tuple[Offset, int]]:
        """The newest entries after `after`, at most so many, in their order: offsets and key hashes. Takes long: use a thread."""

    def topics(self, after: Offset, upto: Offset) -> frozenset[TopicNumber]:
        """Which topics have entries in between."""

    def end(self) -> Offset:
        """The newest offset of all topics."""

    def close(self) -> None:
        """Release the files. Safe to call twice."""
