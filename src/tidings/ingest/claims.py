"""The table of claims: which (source, id) a topic has taken, with which content, in slices of time. One file, one writer.

The table is derived: the log holds the truth, and the file may be moved away while no hub runs. `mark` says up to where the log's
entries are in the table, and is written with them in one transaction; after a crash, or when the file was lost, the rest is read
from the log again.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from tidings.clock import SECOND, Instant
from tidings.errors import LogUnavailable
from tidings.events.model import Event, text_of
from tidings.log.position import Marks, Offset, Partition, TopicNumber
from tidings.log.sqlite.identity import OpenedFile
from tidings.sqlite.files import FileKind, open_writer, translating

SLICES = 8
LONGEST_SLICE = 30 * 86400 * SECOND
SHORTEST_SLICE = 60 * SECOND

WAL_BYTES = 64 << 20

CLAIMS = FileKind(
    name="the duplicate check's file",
    application_id=0x54444350,
    version=1,
    schema=(
        """CREATE TABLE claims (
             topic INTEGER NOT NULL, slice INTEGER NOT NULL, key BLOB NOT NULL, digest BLOB NOT NULL, at INTEGER NOT NULL,
             PRIMARY KEY (topic, slice, key)) WITHOUT ROWID""",
        "CREATE TABLE slices (topic INTEGER NOT NULL, slice INTEGER NOT NULL, PRIMARY KEY (topic, slice)) WITHOUT ROWID",
        'CREATE TABLE mark (partition INTEGER PRIMARY KEY, "offset" INTEGER NOT NULL)',
    ),
)

_ADD = (
    "INSERT INTO claims VALUES (?, ?, ?, ?, ?)"
    " ON CONFLICT DO UPDATE SET digest = excluded.digest, at = excluded.at WHERE excluded.at > at"
)


class ClaimKey(NamedTuple):
    """What identifies an event in a topic: a digest of its source and id."""

    topic: TopicNumber
    digest: bytes


class Claim(NamedTuple):
    """What was published under a key, and when. `slice` is the end of the slice of time it is kept in."""

    content: bytes
    at: Instant
    slice: int


def key_of(topic: TopicNumber, event: Event) -> ClaimKey:
    """The key of an event. Source and id are told apart by the length of the first."""
    source = event.source.encode()
    return ClaimKey(topic, hashlib.blake2b(b"%d:%b%b" % (len(source), source, event.id.encode()), digest_size=16).digest())


def content_of(event: Event) -> bytes:
    """A digest of all attributes, in whatever order they came, and the payload. Transport headers are no content."""
    attributes = sorted((name, text_of(value)) for name, value in event.attributes.items())
    head = msgspec.json.encode((attributes, event.base64, event.data is not None))
    return hashlib.blake2b(head + (event.data or b""), digest_size=16).digest()


def slice_of(at: Instant, window: float) -> int:
    """The end of the slice that an event of this time is kept in. A window has about eight slices."""
    length = int(min(max(window * SECOND / SLICES, SHORTEST_SLICE), LONGEST_SLICE))
    return (at // length + 1) * length


class ClaimsTable:
    """The file. `find` is for the event loop's thread, everything else for one writing thread."""

    def __init__(self, path: Path) -> None:
        self._writer = open_writer(path, CLAIMS, WAL_BYTES)
        with translating(path, opening=True):
            # SQLite itself moves commits into the file now and then.
            self._writer.execute("PRAGMA wal_autocheckpoint=1000").fetchall()
            self._reader = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._file = OpenedFile(path)
        self._slices: dict[TopicNumber, frozenset[int]] = {}
        for topic, end in self._writer.execute("SELECT topic, slice FROM slices"):
            self._know(topic, end)

    def _know(self, topic: TopicNumber, end: int) -> None:
        """Replaces the set: the other thread may be reading the old one."""
        self._slices[topic] = self._slices.get(topic, frozenset()) | {end}

    def find(self, key: ClaimKey, since: int) -> tuple[bytes, int] | None:
        """The content and time of the newest claim with this key that is not older than `since`."""
        ends = [end for end in self._slices.get(key.topic, ()) if end > since]
        if not ends:
            return None
        marks = ",".join("?" * len(ends))
        found = self._reader.execute(
            f"SELECT digest, at FROM claims WHERE topic = ? AND slice IN ({marks}) AND key = ? AND at >= ?"
            " ORDER BY at DESC LIMIT 1",
            (key.topic, *ends, key.digest, since),
        ).fetchone()
        return found if found is None else (found[0], found[1])

    def mark(self) -> Marks:
        """Up to where the log's entries are in the table."""
        rows = self._writer.execute("SELECT partition, offset FROM mark")
        return {Partition(partition): Offset(offset) for partition, offset in rows}

    def add(self, claims: Iterable[tuple[ClaimKey, Claim]], mark: Marks) -> None:
        """Store the claims and how far they reach, in one durable transaction. Twice is the same as once."""
        self._file.check()
        rows = [(key.topic, claim.slice, key.digest, claim.content, claim.at) for key, claim in claims]
        ends = {(topic, end) for topic, end, *_ in rows}
        try:
            with self._writer:
                self._writer.execute("BEGIN IMMEDIATE")
                self._writer.executemany("INSERT OR IGNORE INTO slices VALUES (?, ?)", ends)
                self._writer.executemany(_ADD, rows)
                self._writer.executemany("INSERT OR REPLACE INTO mark VALUES (?, ?)", list(mark.items()))
        except sqlite3.Error as error:
            raise LogUnavailable(f"the duplicate check's file cannot be written: {error}") from error
        for topic, end in ends:
            self._know(topic, end)

    def drop(self, ended: Sequence[tuple[TopicNumber, int]], rows: int = 5000) -> bool:
        """Remove at most `rows` claims of slices that have ended; whether some are left."""
        for topic, end in ended:
            gone = self._writer.execute(
                "DELETE FROM claims WHERE topic = ?1 AND slice = ?2 AND key IN"
                " (SELECT key FROM claims WHERE topic = ?1 AND slice = ?2 LIMIT ?3)",
                (topic, end, rows),
            ).rowcount
            if gone == rows:
                return True
            self._writer.execute("DELETE FROM slices WHERE topic = ? AND slice = ?", (topic, end))
            self._slices[topic] -= {end}
        return False

    def slices(self) -> Sequence[tuple[TopicNumber, int]]:
        """Every slice there is, as (topic, its end)."""
        return [(topic, end) for topic, ends in list(self._slices.items()) for end in sorted(ends)]

    def close(self) -> None:
        """Release the file. Safe to call twice."""
        self._reader.close()
        self._writer.close()
