"""The data files: readable, of a known version, and (when asked to look deep) undamaged."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from tidings.doctor.finding import Finding, Verdict
from tidings.errors import Misconfigured
from tidings.serve import folder as data_folder

_REMEDY = "stop the hub and restore a backup into a new folder"


def look(folder: Path, *, deep: bool) -> list[Finding]:
    """The folder itself, then every database in it."""
    about = _folder(folder)
    return [about, *(_file(path, deep=deep) for path in sorted(folder.glob("*.db")))]


def _folder(folder: Path) -> Finding:
    if not folder.exists():
        return Finding("data folder", Verdict.OK, f"{folder} will be made at the first start")
    try:
        version = data_folder.version_of(folder)
    except Misconfigured as error:
        return Finding("data folder", Verdict.WRONG, str(error), "use the Tidings that wrote it, or another folder with --data")
    holder = data_folder.holder(folder)
    use = f", used by process {holder}" if holder and holder > 0 else ""
    return Finding("data folder", Verdict.OK, f"{folder}, format {version or 'not said'}{use}")


def _file(path: Path, *, deep: bool) -> Finding:
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=5)) as connection:
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            fault = connection.execute("PRAGMA quick_check(1)").fetchone()[0] if deep else "ok"
    except sqlite3.Error as error:
        return Finding(path.name, Verdict.WRONG, f"cannot be read: {error}", _REMEDY)
    if fault != "ok":
        return Finding(path.name, Verdict.WRONG, f"is damaged: {fault}", _REMEDY)
    checked = ", undamaged" if deep else ""
    return Finding(path.name, Verdict.OK, f"version {version}, {path.stat().st_size / 1e6:,.1f} MB{checked}")
