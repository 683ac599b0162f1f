"""The contract of stores, over every one of them; and what each does on its own."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tidings.client.feeds import DbApiStore, MemoryStore, SqliteStore, Store, StoredCursor
from tidings.client.feeds.dbapi import ParamStyle, _in_style
from tidings.errors import CursorMoved, Misconfigured

FEED = "http://x/feed"

MAKERS: dict[str, Callable[[Path], Store]] = {
    "memory": lambda folder: MemoryStore(),
    "sqlite": lambda folder: SqliteStore(folder / "mine.db"),
    "any driver": lambda folder: DbApiStore(lambda: sqlite3.connect(folder / "mine.db")),
    "any driver, named": lambda folder: DbApiStore(lambda: sqlite3.connect(folder / "mine.db"), "named"),
}


@pytest.fixture(params=MAKERS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return MAKERS[request.param](tmp_path)


def save(store: Store, partition: str, row: StoredCursor, before: StoredCursor | None) -> None:
    with store.transaction() as tx:
        store.save(tx, FEED, partition, row, before)


def test_what_was_saved_is_loaded_by_feed_and_partition(store: Store) -> None:
    assert store.load(FEED) == {}
    save(store, "0", StoredCursor("c1"), None)
    save(store, "1", StoredCursor("c2", finished=True), None)
    save(store, "0", StoredCursor("c5"), StoredCursor("c1"))
    assert store.load(FEED) == {"0": StoredCursor("c5"), "1": StoredCursor("c2", finished=True)}
    assert store.load("http://other") == {}


def test_nothing_is_kept_of_a_transaction_that_failed(store: Store) -> None:
    save(store, "0", StoredCursor("c1"), None)
    with pytest.raises(ZeroDivisionError), store.transaction() as tx:
        store.save(tx, FEED, "0", StoredCursor("c2"), StoredCursor("c1"))
        raise ZeroDivisionError
    assert store.load(FEED) == {"0": StoredCursor("c1")}


@pytest.mark.parametrize("before", [None, StoredCursor("c0"), StoredCursor("c1", finished=True)])
def test_a_second_reader_of_the_same_feed_is_found_out(store: Store, before: StoredCursor | None) -> None:
    save(store, "0", StoredCursor("c1"), None)
    with pytest.raises(CursorMoved):
        save(store, "0", StoredCursor("c2"), before)
    assert store.load(FEED) == {"0": StoredCursor("c1")}


def test_the_handler_writes_in_the_same_transaction(tmp_path: Path) -> None:
    for store in (SqliteStore(tmp_path / "a.db"), DbApiStore(lambda: sqlite3.connect(tmp_path / "b.db"))):
        with store.transaction() as tx:
            tx.execute("CREATE TABLE mine (n INTEGER)")
        with pytest.raises(ZeroDivisionError), store.transaction() as tx:
            tx.execute("INSERT INTO mine VALUES (1)")
            raise ZeroDivisionError
        with store.transaction() as tx:
            assert tx.execute("SELECT count(*) FROM mine").fetchone() == (0,)
        store.close()
        store.close()


def test_a_handler_cannot_end_the_transaction_by_accident(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "mine.db")
    store.connection.execute("CREATE TABLE mine (n INTEGER)")
    with store.transaction() as tx, tx:
        tx.execute("INSERT INTO mine VALUES (1)")
    with pytest.raises(Misconfigured, match="may not commit"), store.transaction() as tx:
        tx.execute("INSERT INTO mine VALUES (2)")
        tx.commit()
    with pytest.raises(Misconfigured, match="without the cursor"), store.transaction() as tx:
        tx.execute("COMMIT")
    assert store.connection.execute("SELECT n FROM mine").fetchall() == [(1,)]


def test_two_processes_on_one_file_wait_for_each_other(tmp_path: Path) -> None:
    first, second = SqliteStore(tmp_path / "mine.db"), SqliteStore(tmp_path / "mine.db", timeout=0.05)
    save(first, "0", StoredCursor("c1"), None)
    with first.transaction() as tx:
        first.save(tx, FEED, "0", StoredCursor("c2"), StoredCursor("c1"))
        with pytest.raises(Misconfigured, match="locked"):
            save(second, "0", StoredCursor("c2"), StoredCursor("c1"))
    with pytest.raises(CursorMoved):
        save(second, "0", StoredCursor("c3"), StoredCursor("c1"))


def _a_text(file: Path) -> None:
    file.write_text("not a database, but long enough to be told from an empty file " * 40)


def _of_others(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE feed_cursor (name TEXT)")


@pytest.mark.parametrize("spoil", [_a_text, _of_others, Path.mkdir, lambda file: file.symlink_to(file.parent / "gone" / "x")])
def test_a_file_that_cannot_be_used_is_a_sentence_with_its_name(tmp_path: Path, spoil: Callable[[Path], object]) -> None:
    file = tmp_path / "mine.db"
    spoil(file)
    store = SqliteStore(file)
    for _ in range(2):
        with pytest.raises(Misconfigured) as caught:
            store.load(FEED)
        assert "mine.db" in str(caught.value)


def test_what_goes_wrong_in_a_handler_is_not_taken_for_trouble_of_the_store(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "mine.db")
    with pytest.raises(sqlite3.OperationalError, match="no such table"), store.transaction() as tx:
        tx.execute("INSERT INTO nowhere VALUES (1)")


def test_a_connection_that_is_lost_is_made_again(tmp_path: Path) -> None:
    made: list[sqlite3.Connection] = []

    def connect() -> sqlite3.Connection:
        made.append(sqlite3.connect(tmp_path / "mine.db"))
        return made[-1]

    store = DbApiStore(connect)
    save(store, "0", StoredCursor("c1"), None)
    made[0].close()
    with pytest.raises(sqlite3.ProgrammingError):
        store.load(FEED)
    assert store.load(FEED) == {"0": StoredCursor("c1")}
    assert len(made) == 2


@pytest.mark.parametrize(
    ("style", "written", "values"),
    [
        ("qmark", "a = ? AND b = ?", (1, 2)),
        ("numeric", "a = :1 AND b = :2", (1, 2)),
        ("named", "a = :p1 AND b = :p2", {"p1": 1, "p2": 2}),
        ("format", "a = %s AND b = %s", (1, 2)),
        ("pyformat", "a = %(p1)s AND b = %(p2)s", {"p1": 1, "p2": 2}),
    ],
)
def test_statements_are_written_in_the_style_of_the_driver(style: ParamStyle, written: str, values: Any) -> None:
    assert _in_style(style, "a = ? AND b = ?", (1, 2)) == (written, values)


def test_a_driver_that_does_not_tell_its_style_is_a_sentence() -> None:
    class Silent:
        pass

    with pytest.raises(Misconfigured, match="parameters"):
        DbApiStore(Silent).load(FEED)
