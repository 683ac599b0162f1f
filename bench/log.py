"""The embedded log: raw SQLite commits, our writer beside them, and reading. No server, no Spark."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import uvloop

from bench.figures import Figure
from tidings import config
from tidings.clock import Instant
from tidings.config import Size
from tidings.lanes.sink import Routed
from tidings.lanes.sqlite.block import packed
from tidings.lanes.sqlite.writer import SqliteLanesReader, SqliteLanesWriter
from tidings.log.port import Draft, Limit
from tidings.log.position import EMBEDDED, START, LaneNumber, Marks, Offset, TopicNumber, embedded
from tidings.log.sqlite.entries import LOG, size_of
from tidings.log.sqlite.reader import SqliteLogReader
from tidings.log.sqlite.writer import SqliteLogWriter
from tidings.sqlite.files import open_writer

DRAFT = Draft(topic=TopicNumber(1), at=Instant(1_700_000_000_000_000), key_hash=7, head=b"h" * 120, data=b"d" * 200)
PAGE = Limit(entries=20_000, bytes=32 << 20)


def figures(seconds: float = 2.0) -> list[Figure]:
    """Every figure of the log; each of our rates beside raw SQLite with as many rows a commit."""
    found = [*beside_raw(1, 1, seconds), *beside_raw(16, 1, seconds), *beside_raw(64, 1, seconds), *beside_raw(1, 100, seconds)]
    return found + reading(200_000) + lanes(10_000, 20)


def beside_raw(appenders: int, batch: int, seconds: float) -> list[Figure]:
    """Raw commits and our writer with as many rows in each, in short turns: the disk is not the same from second to second."""
    rows, turns = appenders * batch, 4
    raw = ours = 0.0
    for _ in range(turns):
        raw += raw_commits(rows, seconds / turns) / turns
        ours += appends(appenders, batch, seconds / turns) / turns
    name = f"{appenders} concurrent appenders" if batch == 1 else f"one appender, batches of {batch}"
    return [
        Figure(f"raw SQLite, executemany, {rows} rows a commit", raw, "rows/s"),
        Figure(name, ours, "events/s", f"raw, {rows} rows a commit", ours / raw),
    ]


def raw_commits(rows: int, seconds: float) -> float:
    """Rows a second with the standard library alone: the same file, the same rows, one fsync a commit."""
    with tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder:
        connection = open_writer(Path(folder) / "raw.db", LOG, 64 << 20)
        connection.execute("PRAGMA wal_autocheckpoint=1000").fetchall()
        values = [(DRAFT.topic, DRAFT.at, DRAFT.key_hash, size_of(DRAFT), DRAFT.head, DRAFT.data)] * rows
        rate = _rate(lambda: _commit(connection, values), rows, seconds)
        connection.close()
    return rate


def _commit(connection: sqlite3.Connection, values: list[tuple[object, ...]]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany("INSERT INTO entries (topic, at, key_hash, size, head, data) VALUES (?,?,?,?,?,?)", values)
    connection.execute("COMMIT")


def appends(appenders: int, batch: int, seconds: float) -> float:
    """Events a second through our writer, from this many coroutines that each wait for their acknowledgement."""
    with tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder:
        return uvloop.run(_append(Path(folder), appenders, [DRAFT] * batch, seconds))


async def _append(folder: Path, appenders: int, drafts: list[Draft], seconds: float) -> float:
    writer = a_writer(folder)
    count, began = 0, time.perf_counter()

    async def publish() -> None:
        nonlocal count
        while time.perf_counter() - began < seconds:
            await writer.append(drafts)
            count += len(drafts)

    await asyncio.gather(*(publish() for _ in range(appenders)))
    rate = count / (time.perf_counter() - began)
    await writer.close()
    return rate


def reading(events: int) -> list[Figure]:
    """Entries a second: as columns for Spark, as values, and by position; and what bounding a micro-batch costs."""
    with tempfile.TemporaryDirectory(prefix="tidings-bench-") as name:
        folder = Path(name)
        uvloop.run(_fill(folder, events))
        log = SqliteLogReader(folder)
        raw = _timed(lambda: _read_raw(folder)) / events
        end = log.ends()
        rates = {
            "scan as columns": events / _timed(lambda: _scan_columns(log, end)),
            "scan as entries": events / _timed(lambda: _scan(log, end)),
        }
        cut = _timed(lambda: log.cut({}, PAGE)) * 1000
        log.close()
    found = [Figure("raw SQLite, fetchall", 1 / raw, "rows/s")]
    found += [Figure(name, rate, "entries/s", "raw fetchall", rate * raw) for name, rate in rates.items()]
    return [*found, Figure("cut a micro-batch of 20,000", cut, "ms")]


async def _fill(folder: Path, events: int) -> None:
    writer = a_writer(folder)
    for _ in range(events // 1000):
        await writer.append([DRAFT] * 1000)
    await writer.close()


def _read_raw(folder: Path) -> None:
    connection = sqlite3.connect(folder / "log.db")
    connection.execute('SELECT "offset", topic, at, key_hash, head, data FROM entries').fetchall()
    connection.close()


def _scan_columns(log: SqliteLogReader, end: Marks) -> None:
    at: int = START
    while columns := log.scan_columns(embedded(at), end, PAGE).offsets:
        at = columns[-1]


def _scan(log: SqliteLogReader, end: Marks) -> None:
    page = log.scan({}, end, PAGE)
    while page.entries:
        page = log.scan(page.reached, end, PAGE)


def lanes(count: int, batches: int) -> list[Figure]:
    """Writing one block for each of many lanes, and looking at one of them."""
    with tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder:
        writer = SqliteLanesWriter(Path(folder))
        spent = 0.0
        for batch in range(batches):
            first = batch * 20_000
            blocks = [packed(LaneNumber(lane), [first + 1, first + 2 + lane % 7, first + 20]) for lane in range(1, count + 1)]
            spent += _timed(lambda found=Routed(blocks, embedded(first + 20_000)): writer.write(found))
        reader = SqliteLanesReader(Path(folder))
        newest = Offset((batches - 1) * 20_000)
        looking = _rate(lambda: reader.blocks(LaneNumber(count // 2), newest, EMBEDDED, 10), 1, 0.5)
        writer.close()
    return [
        Figure(f"write a block to each of {count:,} lanes", spent / batches * 1000, "ms a batch"),
        Figure("look at a lane's newest block", 1e6 / looking, "µs"),
    ]


def a_writer(folder: Path) -> SqliteLogWriter:
    """Our writer with its defaults, whatever room this machine has."""
    return SqliteLogWriter(folder, replace(config.load(environ={}).log, disk_reserve=Size(0)))


def _rate(step: Callable[[], object], each: int, seconds: float) -> float:
    count, began = 0, time.perf_counter()
    while (spent := time.perf_counter() - began) < seconds:
        step()
        count += each
    return count / spent


def _timed(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began
