"""Opening the registry: made, upgraded, refused. A killed process leaves the old revision or the new one, never half."""

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import create_engine

from tests.builders import a_topic
from tidings.clock import Instant
from tidings.errors import DataFolderUnusable, DataVersionUnsupported, Misconfigured, NotReady
from tidings.log.position import embedded
from tidings.registry import migrations
from tidings.registry.store import open_reader, open_writer
from tidings.registry.store.database import place
from tidings.registry.store.schema import METADATA, VERSION

ROUNDS = 6

# Puts both topics in every revision, and says so only when it is durable.
CHANGER = """
import sys
from pathlib import Path
from tests.builders import a_topic
from tidings.clock import Instant
from tidings.log.position import embedded
from tidings.registry.store import open_writer
store = open_writer(Path(sys.argv[1]))
while True:
    n = store.revision() + 1
    store.put([a_topic("a", description=str(n)), a_topic("b", description=str(n))], by="a", at=Instant(n), marks=embedded(n))
    print(n, flush=True)
"""


def a_registry(folder: Path) -> Path:
    with open_writer(folder) as store:
        store.put([a_topic()], by="ann", at=Instant(1), marks=embedded(1))
    return folder / "registry.db"


def test_the_migrations_make_the_tables_that_the_store_uses(tmp_path: Path) -> None:
    file = a_registry(tmp_path)
    with create_engine(f"sqlite:///{file}").connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []


def test_the_newest_migration_is_the_version_that_the_store_names() -> None:
    assert migrations.head() == VERSION


def test_the_file_is_set_up_for_durable_commits_and_cheap_shrinking(tmp_path: Path) -> None:
    connection = sqlite3.connect(a_registry(tmp_path))
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA auto_vacuum").fetchone() == (2,)
    with open_writer(tmp_path) as store, store._writing.connect() as writing:
        assert writing.exec_driver_sql("PRAGMA synchronous").scalar() == 2


def test_a_folder_with_odd_characters_is_fine(tmp_path: Path) -> None:
    folder = tmp_path / "50% o'clock?#ä b"
    folder.mkdir()
    a_registry(folder)
    assert open_reader(folder).revision() == 1


def test_a_reader_waits_for_the_writer_and_makes_nothing(tmp_path: Path) -> None:
    with pytest.raises(NotReady):
        open_reader(tmp_path)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "registry.db").touch()
    with pytest.raises(NotReady):
        open_reader(tmp_path)
    assert (tmp_path / "registry.db").stat().st_size == 0


def test_a_newer_registry_is_refused_by_both(tmp_path: Path) -> None:
    file = a_registry(tmp_path)
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    for opened in (open_writer, open_reader):
        with pytest.raises(DataVersionUnsupported, match="newer version"):
            opened(tmp_path)


def test_a_file_that_is_no_database_is_refused_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "registry.db").write_bytes(b"this is no database at all" * 100)
    for opened in (open_writer, open_reader):
        with pytest.raises(DataFolderUnusable, match=r"the registry file is damaged: never move registry\.db"):
            opened(tmp_path)


def test_a_damaged_file_is_refused_with_a_sentence(tmp_path: Path) -> None:
    file = a_registry(tmp_path)
    raw = bytearray(file.read_bytes())
    raw[len(raw) // 3 :] = os.urandom(len(raw) - len(raw) // 3)
    file.write_bytes(raw)
    with pytest.raises(DataFolderUnusable, match="damaged"):
        open_writer(tmp_path)


def test_a_document_that_cannot_be_read_is_a_sentence(tmp_path: Path) -> None:
    file = a_registry(tmp_path)
    with sqlite3.connect(file) as connection:
        connection.execute("""UPDATE versions SET document = '{"name": 5}'""")
    connection.close()
    with pytest.raises(DataFolderUnusable, match="cannot be read"):
        open_reader(tmp_path).snapshot()


def test_a_folder_that_is_not_there_is_refused_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(DataFolderUnusable, match="cannot be read or written"):
        open_writer(tmp_path / "nowhere")


def test_a_password_in_an_address_is_not_shown() -> None:
    assert "hushhush" not in place("postgresql://user:hushhush@db.example/tidings")


@pytest.mark.parametrize("address", ["", "nonsense", "nosuchdatabase://x/y", "sqlite://user:hushhush@/x.db"])
def test_an_address_of_no_database_is_refused_with_a_sentence(address: str) -> None:
    with pytest.raises(Misconfigured) as refused:
        open_writer(address)
    assert "hushhush" not in str(refused.value)


def test_a_killed_process_leaves_the_old_revision_or_the_new_one(tmp_path: Path) -> None:
    for round_ in range(ROUNDS):
        changer = subprocess.Popen([sys.executable, "-c", CHANGER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        assert changer.stdout is not None
        for _ in range(1 + 2 * round_):
            changer.stdout.readline()
        os.kill(changer.pid, signal.SIGKILL)
        said = [int(line) for line in changer.stdout.read().split()]
        changer.wait()
        with open_writer(tmp_path) as store:
            snapshot = store.snapshot()
            assert snapshot.revision >= max(said, default=round_ + 1)
            assert {int(topic.description) for topic in snapshot.topics.values()} == {snapshot.revision}
            assert [change.revision for change in store.changes(snapshot.revision - 1, 10)] == [snapshot.revision] * 2
