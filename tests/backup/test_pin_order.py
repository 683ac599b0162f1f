"""The order of pinning."""

from __future__ import annotations

from tidings.backup.pin_order import pin_order, plain_files

FOLDER = [
    "log.db", "log.db-wal", "log.db-shm", "log.db.lock", "registry.db", "lanes.db", "delivery-1.db", "delivery-0.db",
    "outcomes-0.db", "cursorsets.db", "hub.lock", "version.json", "hub.key", "version.json.new",
]  # fmt: skip


def test_what_is_downstream_is_pinned_first_and_the_log_last() -> None:
    assert pin_order(FOLDER) == [
        "outcomes-0.db", "delivery-0.db", "delivery-1.db", "lanes.db", "cursorsets.db", "registry.db", "log.db",
    ]  # fmt: skip


def test_locks_and_what_sqlite_keeps_beside_a_file_stay_behind() -> None:
    assert plain_files(FOLDER) == ["hub.key", "version.json"]
