"""Opening the registry: the writer makes or upgrades the tables, readers only look whether they are what they know."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, insert, inspect, select, text

from tidings.data_files import hub_id, remedy
from tidings.errors import DataFolderUnusable, DataVersionUnsupported, NotReady
from tidings.registry.store.database import FILE, connect, damage, opening, place
from tidings.registry.store.reader import SqlRegistryReader
from tidings.registry.store.schema import HUB, VERSION
from tidings.registry.store.writer import SqlRegistryWriter


def open_writer(where: Path | str) -> SqlRegistryWriter:
    """The registry's writer, its tables made or upgraded. `where`: the data folder, or the address of a database.

    Raises DataFolderUnusable (damaged, not writable) and DataVersionUnsupported (written by a newer hub).
    """
    engine = connect(where, writing=True)
    with opening(where), engine.begin() as connection:
        found = damage(connection)
        if found:
            raise DataFolderUnusable(f"the registry file is damaged ({found}): {remedy(FILE)}", at=place(where))
        if _version(connection) != VERSION:
            _upgrade(connection, where)
        _belong(connection, where)
    return SqlRegistryWriter(where, connect(where, writing=False), engine)


def _belong(connection: Connection, where: Path | str) -> None:
    """New tables are told whose they are; those of another hub are refused."""
    mine, found = hub_id(where) if isinstance(where, Path) else "", connection.execute(select(HUB.c.id)).scalar()
    if found is None:
        connection.execute(insert(HUB).values(id=mine))
    elif mine and found and mine != found:
        raise DataFolderUnusable(f"{place(where)} belongs to another hub ({found}, this one is {mine}): {remedy(FILE)}")


def open_reader(where: Path | str) -> SqlRegistryReader:
    """A reader of the registry. Raises NotReady while the writer has not made or upgraded the tables yet."""
    if isinstance(where, Path) and not (where / FILE).exists():
        raise NotReady("the registry is not there yet", at=place(where))
    engine = connect(where, writing=False)
    with opening(where), engine.connect() as connection:
        found = _version(connection)
        if found != VERSION:
            _refuse_newer(found, where)
            raise NotReady("the registry is not up to date yet", at=place(where), found=found, expected=VERSION)
    return SqlRegistryReader(where, engine)


def _version(connection: Connection) -> str | None:
    """The migration the tables are at; None when there are none."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def _upgrade(connection: Connection, where: Path | str) -> None:
    # Imported late: Alembic takes longer to import than an up-to-date registry takes to open.
    from tidings.registry import migrations

    _refuse_newer(_version(connection), where)
    migrations.upgrade(connection)


def _refuse_newer(found: str | None, where: Path | str) -> None:
    from tidings.registry import migrations

    if found is not None and not migrations.knows(found):
        raise DataVersionUnsupported(
            "the registry was written by a newer version",
            at=place(where),
            found=found,
            expected=f"at most {VERSION}; upgrade the hub",
        )
