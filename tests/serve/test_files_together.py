"""The files of a data folder know each other: what was lost, exchanged or mixed up is told at the start."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.api_process import an_api
from tests.builders import a_draft, a_topic
from tests.contracts.log_contract import opened
from tests.log.sqlite.opening import open_writer as open_log
from tidings.access.secrets import hub_key
from tidings.data_files import hub_id
from tidings.delivery.push.sqlite import SqliteDeliveryStore
from tidings.delivery.push.store import Flush
from tidings.doctor.finding import DoctorVerdict
from tidings.doctor.sqlite import look
from tidings.errors import DataFolderUnusable
from tidings.ingest.claims import ClaimsTable
from tidings.lanes.sink import Routed
from tidings.lanes.sqlite.writer import SqliteLanesWriter
from tidings.log.position import embedded
from tidings.registry.store import open_writer as open_registry
from tidings.serve import folder as data_folder
from tidings.serve.sqlite_files import check

EVENTS = 20


def a_hub(folder: Path) -> Path:
    """A folder as a hub leaves it that has routed and delivered everything."""
    data_folder.prepare(folder)
    hub_key(folder)

    async def publish() -> None:
        async with opened(open_log(folder)) as log:
            await log.append([a_draft(topic=1) for _ in range(EVENTS)])

    asyncio.run(publish())
    with open_registry(folder) as registry:
        registry.put([a_topic("orders")], by="me", at=1, marks=embedded(EVENTS))  # type: ignore[arg-type]
    lanes = SqliteLanesWriter(folder)
    lanes.write(Routed((), embedded(EVENTS)))
    lanes.close()
    claims = ClaimsTable(folder / "duplicates.db")
    claims.add((), embedded(EVENTS))
    claims.close()
    store = SqliteDeliveryStore(folder)
    store.save(Flush(at=1, commands=embedded(EVENTS)))  # type: ignore[call-arg, arg-type]
    store.close()
    return folder


def remove(folder: Path, name: str) -> None:
    for path in folder.glob(f"{name}*"):
        path.unlink()


def test_the_files_of_a_hub_carry_its_id_and_belong_together(tmp_path: Path) -> None:
    folder = a_hub(tmp_path / "data")
    check(folder)
    files = sorted(folder.glob("*.db"))
    assert {path.name for path in files} == {"log.db", "registry.db", "lanes.db", "duplicates.db", "delivery-0.db"}
    for path in files:
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("SELECT id FROM hub").fetchall() == [(hub_id(folder),)]


@pytest.mark.parametrize("knowing", ["lanes.db", "duplicates.db", "delivery-0.db", "registry.db"])
def test_a_log_that_is_gone_is_missed_by_every_file_that_knows_positions(tmp_path: Path, knowing: str) -> None:
    folder = a_hub(tmp_path / "data")
    for path in folder.glob("*.db*"):
        if not path.name.startswith(knowing):
            path.unlink()
    with pytest.raises(DataFolderUnusable, match=rf"log\.db is missing or empty, but {knowing} knows positions up to {EVENTS}"):
        check(folder)


def test_an_older_log_is_refused_with_what_may_be_moved_and_what_never(tmp_path: Path) -> None:
    folder = a_hub(tmp_path / "data")
    with closing(sqlite3.connect(folder / "log.db", isolation_level=None)) as connection:
        connection.execute("UPDATE sqlite_sequence SET seq = 5")
    with pytest.raises(DataFolderUnusable, match=r"log\.db ends at 5, but .*never move log\.db away alone.*tidings renew-log"):
        check(folder)


def test_a_log_without_its_registry_is_refused(tmp_path: Path) -> None:
    folder = a_hub(tmp_path / "data")
    remove(folder, "registry.db")
    with pytest.raises(DataFolderUnusable, match=r"registry\.db is missing or empty, but the log holds events.*never move"):
        check(folder)


def test_a_registry_older_than_the_log_is_refused(tmp_path: Path) -> None:
    folder = a_hub(tmp_path / "data")
    with closing(sqlite3.connect(folder / "registry.db", isolation_level=None)) as connection:
        connection.execute("UPDATE numbers SET last = 0 WHERE kind = 'topic'")
    with pytest.raises(DataFolderUnusable, match=r"topics up to number 0, but the log holds events of number 1"):
        check(folder)


def test_a_log_without_the_key_of_its_hub_is_refused(tmp_path: Path) -> None:
    folder = a_hub(tmp_path / "data")
    (folder / "hub.key").unlink()
    with pytest.raises(DataFolderUnusable, match=r"hub\.key is missing"):
        check(folder)


@pytest.mark.parametrize("name", ["lanes.db", "duplicates.db", "delivery-0.db"])
def test_what_may_be_moved_away_is_not_missed(tmp_path: Path, name: str) -> None:
    folder = a_hub(tmp_path / "data")
    remove(folder, name)
    check(folder)


OPENERS: dict[str, Callable[[Path], object]] = {
    "log.db": open_log,
    "registry.db": open_registry,
    "lanes.db": SqliteLanesWriter,
    "duplicates.db": lambda folder: ClaimsTable(folder / "duplicates.db"),
    "delivery-0.db": SqliteDeliveryStore,
}


@pytest.mark.parametrize("name", list(OPENERS))
def test_a_file_of_another_hub_is_refused_by_the_check_the_doctor_and_whoever_opens_it(tmp_path: Path, name: str) -> None:
    folder, other = a_hub(tmp_path / "data"), a_hub(tmp_path / "other")
    remove(folder, name)
    shutil.copyfile(other / name, folder / name)
    with pytest.raises(DataFolderUnusable, match=f"{name} belongs to another hub"):
        check(folder)
    with pytest.raises(DataFolderUnusable, match="belongs to another hub"):
        OPENERS[name](folder)
    wrong = [found for found in look(folder, deep=False) if found.verdict is DoctorVerdict.WRONG]
    assert [found.subject for found in wrong] == [name] and "move" in wrong[0].remedy


def test_a_folder_that_lost_its_version_file_stays_the_hub_that_it_was(tmp_path: Path) -> None:
    folder = a_hub(tmp_path / "data")
    before = hub_id(folder)
    (folder / "version.json").unlink()
    data_folder.prepare(folder)
    assert hub_id(folder) == before
    check(folder)


def test_a_damaged_file_is_refused_until_it_is_in_order_again(tmp_path: Path) -> None:
    folder = a_hub(tmp_path / "data")
    (folder / "log.db.damaged").write_text("{}")
    check(folder)
    assert not (folder / "log.db.damaged").exists(), "the file was read and is in order"
    whole = (folder / "log.db").read_bytes()
    with (folder / "log.db").open("r+b") as file:
        file.seek(2 * 4096)
        file.write(b"\xff" * 4096)
    (folder / "log.db.damaged").write_text("{}")
    with pytest.raises(DataFolderUnusable, match=r"log\.db is damaged"):
        check(folder)
    (folder / "log.db").write_bytes(whole)
    check(folder)


def test_a_folder_that_is_replaced_under_a_living_api_takes_no_more_events(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with an_api(folder) as api:
        assert api.call("PUT", "/api/topics/orders", {}).status == 201
        assert api.publish("orders", {"total": 5}).status in (201, 202)
        (tmp_path / "data").rename(tmp_path / "gone")
        folder.mkdir()
        answer = api.publish("orders", {"total": 6})
        assert (answer.status, b"log.db is gone" in answer.body) == (503, True)
        assert api.call("PUT", "/api/topics/returns", {}).status == 503
        ready = api.call("GET", "/health/ready").json
        assert "log.db is gone" in ready["parts"]["api"]["reason"]
        shutil.rmtree(folder)
        (tmp_path / "gone").rename(folder)
