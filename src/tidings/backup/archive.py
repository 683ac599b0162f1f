"""One tar file for a whole data folder: a manifest first, then the files with their checksums. It is there whole or not at all."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tidings import __version__
from tidings.backup.pin_order import LOG, plain_files
from tidings.backup.sqlite import Progress, leap_ahead, pin_all, restamp
from tidings.clock import Instant, rfc3339
from tidings.errors import DataFolderUnusable, Malformed, NotFound
from tidings.serve import folder as data_folder

MANIFEST = "tidings-backup.json"
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Summary:
    """What a backup holds."""

    at: str
    files: tuple[str, ...]
    bytes: int


def make(folder: Path, file: Path, now: Instant, progress: Progress, *, replace: bool = False) -> Summary:
    """Copy the data folder, whose hub may be running, into one new file; what is in it.

    The bytes are counted twice by `progress`: once copied, once packed.
    """
    if data_folder.version_of(folder) is None:
        raise NotFound(f"there is no data of a hub in {folder}", expected="its data folder with --data")
    if file.exists() and not replace:
        raise DataFolderUnusable(f"{file} is there already; choose another name, or replace it with --replace")
    try:
        with tempfile.TemporaryDirectory(prefix=".tidings-backup-", dir=file.absolute().parent) as scratch:
            names = _copy(folder, Path(scratch), progress)
            packed = Path(scratch) / "packed"
            summary = _pack(Path(scratch), names, packed, file, now, progress)
            packed.replace(file)
    except OSError as error:
        raise DataFolderUnusable(f"the backup could not be written: {error.strerror or error}", at=str(file)) from error
    return summary


def size_of(folder: Path) -> int:
    """About how many bytes `progress` of `make` will count."""
    return 2 * sum(path.stat().st_size for path in folder.glob("*.db"))


def restore(file: Path, folder: Path, progress: Progress) -> Summary:
    """Bring a backup into an empty or new folder. Raises before anything is changed, or leaves nothing behind."""
    _refuse_used(folder)
    with _opened(file) as tar:
        manifest = _manifest(tar, file)
        fresh = folder.absolute().with_name(f".{folder.absolute().name}.restoring-{os.getpid()}")
        try:
            fresh.mkdir(mode=0o700, parents=True)
            _unpack(tar, manifest, fresh, progress)
            if (fresh / LOG).exists():
                leap_ahead(fresh / LOG)
            _begin_new_life(fresh)
            # Renaming onto an empty folder is allowed; onto one that a hub has begun to use it fails.
            fresh.rename(folder.absolute())
        except (OSError, tarfile.TarError, EOFError) as error:
            raise DataFolderUnusable(f"the backup could not be restored: {error}", at=str(folder)) from error
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    return _summary(manifest)


def _begin_new_life(fresh: Path) -> None:
    """A restored hub is another one than the lost one: their files are not to be mixed, should the lost ones turn up again."""
    hub = data_folder.new_id()
    for path in fresh.glob("*.db"):
        restamp(path, hub)
    data_folder.write_version(fresh, hub)


def _copy(folder: Path, scratch: Path, progress: Progress) -> list[str]:
    """Pin all, then copy: the moment of a file is when it was pinned, however long the copying takes."""
    with ExitStack() as held:
        plain = plain_files(path.name for path in folder.iterdir() if path.is_file())
        pinned = pin_all(folder, held)
        for name in plain:
            shutil.copyfile(folder / name, scratch / name)
        for view in pinned:
            view.copy_to(scratch / view.name, progress)
            view.close()
        return [*plain, *(view.name for view in pinned)]


def _pack(scratch: Path, names: list[str], packed: Path, file: Path, now: Instant, progress: Progress) -> Summary:
    files = [{"name": name, "bytes": (scratch / name).stat().st_size, "sha256": _sha256(scratch / name)} for name in names]
    manifest = {"format": data_folder.FORMAT, "written_by": __version__, "at": rfc3339(now), "files": files}
    with _private(packed) as out:
        with _packing(out, zipped=file.name.endswith((".gz", ".tgz"))) as tar:
            _add(tar, MANIFEST, io.BytesIO(text := json.dumps(manifest, indent=1).encode()), len(text))
            for name in names:
                with (scratch / name).open("rb") as source:
                    _add(tar, name, _Counted(source, progress), (scratch / name).stat().st_size)
        out.flush()
        os.fsync(out.fileno())
    return _summary(manifest)


def _packing(out: IO[bytes], *, zipped: bool) -> tarfile.TarFile:
    return tarfile.open(fileobj=out, mode="w:gz", compresslevel=3) if zipped else tarfile.open(fileobj=out, mode="w")


def _private(path: Path) -> IO[bytes]:
    """A new file to write that only its owner may read: a backup holds the hub's keys."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")


def _add(tar: tarfile.TarFile, name: str, source: Any, size: int) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, 0o600
    tar.addfile(info, source)


class _Counted:
    """A file that tells how much of it was read."""

    def __init__(self, source: IO[bytes], progress: Progress) -> None:
        self._source = source
        self._progress = progress

    def read(self, size: int = -1) -> bytes:
        block = self._source.read(size)
        self._progress(len(block))
        return block


def _sha256(path: Path) -> str:
    with path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def _refuse_used(folder: Path) -> None:
    if data_folder.holder(folder) is not None:
        raise DataFolderUnusable(f"a hub runs in {folder}; a backup is restored into an empty folder only")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DataFolderUnusable(f"{folder} is not empty; a backup is restored into an empty or new folder only")


@contextmanager
def _opened(file: Path) -> Iterator[tarfile.TarFile]:
    try:
        with tarfile.open(file, "r:*") as tar:
            yield tar
    except FileNotFoundError as error:
        raise NotFound(f"there is no file {file}") from error
    except (OSError, tarfile.TarError, EOFError) as error:
        raise Malformed(f"{file} cannot be read as a backup: {error}") from error


def _manifest(tar: tarfile.TarFile, file: Path) -> dict[str, Any]:
    first = tar.next()
    content = tar.extractfile(first) if first is not None and first.name == MANIFEST else None
    if content is None:
        raise Malformed(f"{file} is no backup of a hub", expected=f"a tar file that begins with {MANIFEST}")
    try:
        manifest = json.loads(content.read())
        names = [entry["name"] for entry in manifest["files"]]
    except (ValueError, TypeError, KeyError) as error:
        raise Malformed(f"the manifest of {file} cannot be read") from error
    data_folder.check_format(manifest.get("format"), str(file))
    if any("/" in name or name.startswith(".") for name in names):
        raise Malformed(f"{file} is no backup of a hub: it names files outside of the folder")
    return dict(manifest)


def _unpack(tar: tarfile.TarFile, manifest: dict[str, Any], target: Path, progress: Progress) -> None:
    """Write the files that the manifest names, and only those, and compare their checksums."""
    for entry in manifest["files"]:
        info = tar.next()
        source = tar.extractfile(info) if info is not None and info.isfile() and info.name == entry["name"] else None
        if source is None:
            raise Malformed(f"the backup is not whole: {entry['name']} is missing")
        digest = hashlib.sha256()
        with _private(target / entry["name"]) as out:
            while block := source.read(_CHUNK):
                out.write(block)
                digest.update(block)
                progress(len(block))
            out.flush()
            os.fsync(out.fileno())
        if digest.hexdigest() != entry["sha256"]:
            raise Malformed(f"the backup is damaged: the checksum of {entry['name']} is wrong")


def _summary(manifest: dict[str, Any]) -> Summary:
    files = manifest["files"]
    return Summary(str(manifest["at"]), tuple(entry["name"] for entry in files), sum(entry["bytes"] for entry in files))
