"""The data folder: made when it is missing, of a known version, and held by one hub at a time.

`hub.lock` is held by the supervisor alone, or shared by parts that run without one; `run/<part>.lock` by the one process of
that part. The kernel lets go of both when their process ends, however it ends.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from tidings import __version__
from tidings.data_files import VERSION_FILE, hub_id, write_durably
from tidings.errors import DataFolderUnusable, DataVersionUnsupported, LogUnavailable, TidingsError, tolerating
from tidings.serve.sqlite_files import hub_of_files

__all__ = ["VERSION_FILE"]

FORMAT = 1
LOCK_FILE = "hub.lock"
RUN = "run"
PARTS = ("api", "pipeline", "deliver")


def prepare(folder: Path) -> None:
    """Make the folder ready for a hub of this version, for its owner only. Twice is safe.

    Raises DataFolderUnusable or DataVersionUnsupported, and LogUnavailable for a full disk, which may be over later.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = version_of(folder)
        if found is None:
            _refuse_foreign(folder)
        if found is None or not hub_id(folder):
            write_version(folder, hub_of_files(folder) or new_id())
        (folder / RUN).mkdir(mode=0o700, exist_ok=True)
        _try_to_write(folder)
        _keep_private(folder)
    except OSError as error:
        raise unusable(folder, error) from error


def _keep_private(folder: Path) -> None:
    """Events, secrets and settings are nobody else's business, also in a folder that was made by hand or by an older hub."""
    with tolerating(PermissionError, doing="keeping the data folder private, it belongs to somebody else"):
        files = [(path, 0o600) for path in folder.iterdir() if path.is_file()]
        for place, mode in ((folder, 0o700), (folder / RUN, 0o700), *files):
            if place.stat().st_mode & 0o077:
                place.chmod(mode)


def version_of(folder: Path) -> int | None:
    """The format of the data in the folder; None when it says nothing. Raises when it is newer than this program or unreadable."""
    try:
        text = (folder / VERSION_FILE).read_text("utf-8")
    except FileNotFoundError:
        return None
    try:
        found = json.loads(text)["format"]
    except (ValueError, TypeError, KeyError) as error:
        raise DataFolderUnusable(
            "the version file of the data folder is damaged",
            at=str(folder / VERSION_FILE),
            found=text,
            expected='{"format": 1}',
        ) from error
    check_format(found, str(folder))
    return int(found)


def check_format(found: object, at: str) -> None:
    """Refuse data of a newer program; older formats would be upgraded from here."""
    if not isinstance(found, int) or found < 1:
        raise DataFolderUnusable("the data has no known format", at=at, found=found, expected=f"1 to {FORMAT}")
    if found > FORMAT:
        raise DataVersionUnsupported(
            f"the data was written by a newer Tidings; this one ({__version__}) must be upgraded first",
            at=at,
            found=found,
            expected=f"format {FORMAT} or older",
        )


def new_id() -> str:
    """An id for a new hub, or for a new life of a restored one."""
    return os.urandom(8).hex()


def write_version(folder: Path, hub: str) -> None:
    """Say which format the folder has and to which hub it belongs; it is there whole or not at all, and durable."""
    about = {"format": FORMAT, "hub": hub, "written_by": __version__}
    write_durably(folder / VERSION_FILE, json.dumps(about).encode() + b"\n")


def _refuse_foreign(folder: Path) -> None:
    """A folder with other things in it is a mistyped path, not a data folder."""
    others = sorted(path.name for path in folder.iterdir())
    if others and not any(name.endswith(".db") or name in (LOCK_FILE, RUN) for name in others):
        raise DataFolderUnusable(
            "the data folder holds other things",
            at=str(folder),
            found=others[0],
            expected="an empty folder or the data of a hub",
        )


def _try_to_write(folder: Path) -> None:
    probe = folder / RUN / f"probe-{os.getpid()}"
    probe.write_bytes(b"?")
    probe.unlink()


def unusable(place: Path, error: OSError) -> TidingsError:
    """A full disk may have room again at the next start; everything else somebody has to mend."""
    what = f"the data folder cannot be used: {_why(error)}"
    if error.errno == errno.ENOSPC:
        return LogUnavailable(what, at=str(place))
    return DataFolderUnusable(what, at=str(place))


def _why(error: OSError) -> str:
    known = {errno.EROFS: "it is read-only", errno.EACCES: "writing is not permitted", errno.ENOSPC: "the disk is full"}
    return known.get(error.errno or 0, error.strerror or str(error))


@contextmanager
def held(folder: Path, *, shared: bool = False) -> Iterator[None]:
    """Hold the folder for this hub. Raises DataFolderUnusable when another one has it."""
    with _lock(folder / LOCK_FILE, shared=shared, patience=0.0):
        yield


@contextmanager
def part_held(folder: Path, part: str, patience: float = 0.0) -> Iterator[None]:
    """Be the one process of this part; waits up to `patience` for a former one that is just ending."""
    with _lock(folder / RUN / f"{part}.lock", shared=False, patience=patience):
        yield


def check_held_by(folder: Path, pid: int) -> None:
    """Refuse a folder that the supervisor `pid` does not hold: another one lies in the place of the one it was started on."""
    try:
        found = _pid_in_file(folder / LOCK_FILE)
    except OSError as error:
        raise unusable(folder, error) from error
    if found != pid:
        raise DataFolderUnusable(
            f"{folder} is not the data folder that this hub was started on: bring that one back, or start the hub again"
        )


def wait_for_parts_to_end(folder: Path, patience: float = 5.0) -> None:
    """After a killed supervisor its children end by themselves; wait for that, so that their port and files are free."""
    others = sorted(path.stem for path in (folder / RUN).glob("deliver-*.lock"))
    for part in (*PARTS, *others):
        with part_held(folder, part, patience):
            pass


def holder(folder: Path) -> int | None:
    """The process id of the hub that holds the folder now; None when nobody does."""
    try:
        with (folder / LOCK_FILE).open("r") as file:
            return None if _locked(file, shared=True) else (_pid_in(file) or -1)
    except OSError:
        return None


@contextmanager
def _lock(path: Path, *, shared: bool, patience: float) -> Iterator[None]:
    until = time.monotonic() + patience
    try:
        file = open(path, "a+", opener=lambda name, flags: os.open(name, flags, 0o600))  # noqa: SIM115 - Path has no opener
    except OSError as error:
        raise unusable(path, error) from error
    with file:
        while not _locked(file, shared=shared):
            if time.monotonic() >= until:
                raise _taken(path, _pid_in(file))
            time.sleep(0.02)
        try:
            file.truncate(0)
            file.write(f"{os.getpid()}\n")
            file.flush()
        except OSError as error:
            raise unusable(path, error) from error
        yield


def _locked(file: IO[str], *, shared: bool) -> bool:
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _pid_in_file(path: Path) -> int | None:
    with path.open("r") as file:
        return _pid_in(file)


def _pid_in(file: IO[str]) -> int | None:
    file.seek(0)
    text = file.read().strip()
    return int(text) if text.isdigit() else None


def _taken(path: Path, pid: int | None) -> DataFolderUnusable:
    who = f" (process {pid})" if pid else ""
    if path.name == LOCK_FILE:
        return DataFolderUnusable(
            f"another hub{who} uses the data folder {path.parent}; stop it, or choose another with --data"
        )
    part = path.stem
    return DataFolderUnusable(f"another {part} part{who} uses the data folder {path.parent.parent}; stop it first")
