"""The data files: readable, of a known version, and (when asked to look deep) undamaged."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from tidings.data_files import remedy
from tidings.doctor.finding import DoctorFinding, DoctorVerdict
from tidings.errors import Misconfigured
from tidings.serve import folder as data_folder
from tidings.serve.sqlite_files import faults
from tidings.sqlite.files import read_only


def look(folder: Path, *, deep: bool) -> list[DoctorFinding]:
    """The folder itself, every database in it, and whether they belong together."""
    about = [_folder(folder), *(_file(path, deep=deep) for path in sorted(folder.glob("*.db")))]
    return [*about, *(DoctorFinding(fault.file, DoctorVerdict.WRONG, fault.what, fault.remedy) for fault in faults(folder))]


def _folder(folder: Path) -> DoctorFinding:
    if not folder.exists():
        return DoctorFinding("data folder", DoctorVerdict.OK, f"{folder} will be made at the first start")
    try:
        version = data_folder.version_of(folder)
    except Misconfigured as error:
        return DoctorFinding(
            "data folder", DoctorVerdict.WRONG, str(error), "use the Tidings that wrote it, or another folder with --data"
        )
    if not os.access(folder, os.W_OK):
        way = "make it writable for the hub: is the disk mounted read-only, or does it belong to somebody else?"
        return DoctorFinding("data folder", DoctorVerdict.WRONG, f"{folder} cannot be written", way)
    holder = data_folder.holder(folder)
    use = f", used by process {holder}" if holder and holder > 0 else ""
    return DoctorFinding("data folder", DoctorVerdict.OK, f"{folder}, format {version or 'not said'}{use}")


def _file(path: Path, *, deep: bool) -> DoctorFinding:
    try:
        with closing(read_only(path)) as connection:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            fault = connection.execute("PRAGMA quick_check(1)").fetchone()[0] if deep else "ok"
    except sqlite3.Error as error:
        return DoctorFinding(path.name, DoctorVerdict.WRONG, f"cannot be read: {error}", _remedy(path))
    if fault != "ok":
        return DoctorFinding(path.name, DoctorVerdict.WRONG, f"is damaged: {fault}", remedy(path.name))
    checked = ", undamaged" if deep else ""
    return DoctorFinding(path.name, DoctorVerdict.OK, f"version {version}, {path.stat().st_size / 1e6:,.1f} MB{checked}")


def _remedy(path: Path) -> str:
    """A file that may not be read is not damaged."""
    if not os.access(path, os.R_OK) or not os.access(path.parent, os.W_OK):
        return "look at it as the user that runs the hub, in a folder that may be written: nothing says that it is damaged"
    return remedy(path.name)
