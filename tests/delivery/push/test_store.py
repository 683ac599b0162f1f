"""Delivery's file: what is saved together, numbered, shown and trimmed."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tests.builders import a_position
from tests.delivery.push.lanes import a_mark
from tidings.clock import Instant
from tidings.delivery.push.lane.saved import encode
from tidings.delivery.push.lane.state import LaneState
from tidings.delivery.push.sqlite import SqliteDeliveryReader, SqliteDeliveryStore
from tidings.delivery.push.store import AppliedCommand, Attempted, Burial, Firsts, Flush, LaneTally, SavedLane
from tidings.errors import DataFolderUnusable, DataVersionUnsupported, LogUnavailable
from tidings.log.position import LaneNumber, Offset, Partition

KEY = LaneNumber(3)


def firsts(*offsets: int, at: int = 100) -> Firsts:
    packed = Firsts()
    for offset in offsets:
        packed.add(a_position(offset), at, 1.5, 204)
    return packed


def an_attempt(offset: int, state: str = "retrying", at: int = 100) -> Attempted:
    return Attempted(KEY, a_position(offset), state, 1, Instant(at), 500, 2.0, "status-500")


def a_burial(offset: int, at: int = 100) -> Burial:
    return Burial(KEY, a_position(offset), "status-500 after 1 try", 1, Instant(1), Instant(at), b"{}", b"data")


def a_saved_lane(lane: LaneNumber = KEY, state: str = "active", low_water: int = 4) -> SavedLane:
    tally = LaneTally(delivered=9, failed_attempts=2, expired=1, last_error="timeout")
    return SavedLane(
        lane=lane,
        state=state,
        body=encode(LaneState(a_mark(low_water))),
        low_water=a_mark(low_water),
        open_items=2,
        next_due=Instant(77),
        tally=tally,
    )


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    store = SqliteDeliveryStore(tmp_path)
    store.save(
        Flush(lanes=[a_saved_lane()], commands={Partition(0): Offset(12)}, applied=[AppliedCommand("c1", Instant(5), "no")])
    )
    store.close()
    again = SqliteDeliveryStore(tmp_path)
    loaded = again.load()
    assert loaded.lanes == {KEY: a_saved_lane()}
    assert loaded.commands == {0: 12}
    assert (again.result("c1"), again.result("c2")) == ("no", None)
    again.close()


def test_a_reader_sees_a_lane_and_defaults_for_an_unknown_one(tmp_path: Path) -> None:
    reader = SqliteDeliveryReader(tmp_path)
    assert (reader.lane(KEY).state, reader.lanes(), reader.result("c1")) == ("active", {}, None)
    store = SqliteDeliveryStore(tmp_path)
    store.save(Flush(lanes=[a_saved_lane()], burials=[a_burial(2)]))
    view = reader.lane(KEY)
    assert (view.low_water.number, view.open_items, view.delivered, view.failed_attempts) == (4, 2, 9, 2)
    assert (view.expired, view.last_error, view.next_due, view.dead_letters) == (1, "timeout", 77, 1)
    assert reader.lanes() == {KEY: view}
    assert reader.lane(LaneNumber(99)).low_water == a_mark(0)
    store.close()
    reader.close()


def test_deliveries_are_numbered_and_paged_newest_first_over_packed_and_single_records(tmp_path: Path) -> None:
    store, reader = SqliteDeliveryStore(tmp_path), SqliteDeliveryReader(tmp_path)
    store.save(Flush(firsts={KEY: firsts(1, 2, 3)}, attempts=[an_attempt(4), an_attempt(5)]))
    store.save(Flush(firsts={KEY: firsts(6, 7), LaneNumber(8): firsts(1)}, attempts=[an_attempt(4, "delivered")]))
    everything = reader.deliveries(KEY, None, 100)
    assert [record.position.offset for record in everything] == [4, 7, 6, 5, 4, 3, 2, 1]
    assert [record.state for record in everything] == ["delivered"] * 3 + ["retrying"] * 2 + ["delivered"] * 3
    assert (everything[1].status, everything[1].tries, everything[1].duration_ms) == (204, 1, 1.5)
    paged, before = [], None
    while page := reader.deliveries(KEY, before, 3):
        paged += page
        before = page[-1].number
    assert paged == everything
    store.close()
    reader.close()


def test_a_raised_dead_letter_is_hidden_but_its_copy_is_kept_until_it_is_released(tmp_path: Path) -> None:
    store, reader = SqliteDeliveryStore(tmp_path), SqliteDeliveryReader(tmp_path)
    store.save(Flush(burials=[a_burial(1), a_burial(2), a_burial(3)]))
    store.save(Flush(raised=[(KEY, a_position(2))]))
    assert [letter.position.offset for letter in reader.dead_letters(KEY, 0, 10)] == [1, 3]
    assert [at.offset for at in store.buried(KEY, None)] == [1, 3]
    assert store.buried(KEY, [a_position(2)])[a_position(2)].data == b"data"
    store.save(Flush(burials=[a_burial(2)]))
    assert [letter.position.offset for letter in reader.dead_letters(KEY, 0, 10)] == [1, 3, 2]
    store.save(Flush(released=[(KEY, a_position(2))]))
    assert store.buried(KEY, [a_position(2)]) == {}
    store.close()
    reader.close()


def test_old_records_are_trimmed_in_slices_and_numbers_go_on(tmp_path: Path) -> None:
    store, reader = SqliteDeliveryStore(tmp_path), SqliteDeliveryReader(tmp_path)
    gone = a_saved_lane(LaneNumber(9), "deleted")
    many = [an_attempt(n) for n in range(1200)]
    store.save(
        Flush(lanes=[gone, a_saved_lane()], firsts={KEY: firsts(1, 2)}, attempts=many, burials=[a_burial(1)], at=Instant(100))
    )
    store.save(Flush(attempts=[an_attempt(9, at=900)], burials=[a_burial(9, at=900)]))
    steps = []
    while step := store.trim(Instant(500)):
        steps.append(step)
    assert len(steps) == 3
    assert [record.number for record in reader.deliveries(KEY, None, 10)] == [1203]
    assert [letter.position.offset for letter in reader.dead_letters(KEY, 0, 10)] == [9]
    assert set(reader.lanes()) == {KEY}
    store.save(Flush(attempts=[an_attempt(1)]))
    assert reader.deliveries(KEY, None, 1)[0].number == 1204
    store.close()
    reader.close()


def test_the_room_of_what_was_trimmed_is_given_back(tmp_path: Path) -> None:
    store = SqliteDeliveryStore(tmp_path)
    large = [Burial(KEY, a_position(n), "status-500", 1, Instant(1), Instant(100), b"{}", bytes(64 << 10)) for n in range(250)]
    store.save(Flush(burials=large))
    while store.trim(Instant(500)):
        pass
    size = (tmp_path / "delivery-0.db").stat().st_size
    assert size < 6 << 20, f"16 MiB were removed, the file still has {size}"
    store.close()


def test_a_save_is_all_or_nothing(tmp_path: Path) -> None:
    store, reader = SqliteDeliveryStore(tmp_path), SqliteDeliveryReader(tmp_path)
    other = sqlite3.connect(tmp_path / "delivery-0.db")
    other.execute("DROP TABLE applied")
    other.close()
    with pytest.raises(LogUnavailable):
        store.save(Flush(lanes=[a_saved_lane()], applied=[AppliedCommand("c1", Instant(5), "")]))
    assert reader.lanes() == {}
    store.close()
    reader.close()


def test_the_file_has_one_writer(tmp_path: Path) -> None:
    store = SqliteDeliveryStore(tmp_path)
    with pytest.raises(DataFolderUnusable):
        SqliteDeliveryStore(tmp_path)
    store.close()
    SqliteDeliveryStore(tmp_path).close()


def test_a_file_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    SqliteDeliveryStore(tmp_path).close()
    changed = sqlite3.connect(tmp_path / "delivery-0.db")
    changed.execute("PRAGMA user_version = 99")
    changed.close()
    with pytest.raises(DataVersionUnsupported):
        SqliteDeliveryStore(tmp_path)
