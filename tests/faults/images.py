"""Small file systems in files, mounted through loop devices: disks that can be filled, taken away, and copied as a power cut
would leave them. They need root, and a kernel with loop devices.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

MOUNT_OPTIONS = "loop,commit=300"
"""The file system commits by itself only every five minutes: what nobody asked to be durable is lost in a power cut."""


def why_not() -> str:
    """Why no file system can be mounted here; empty: one can."""
    if os.geteuid() != 0:
        return "mounting a file system needs root"
    for program in ("mkfs.ext4", "mount", "umount"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    if not Path("/dev/loop-control").exists():
        return "this machine has no loop devices"
    return ""


class Image:
    """An ext4 file system of so many MiB, mounted at `at` from `with` to its end."""

    def __init__(self, folder: Path, mebibytes: int) -> None:
        self.at = folder / "mounted"
        self._folder = folder
        self._file = folder / "disk.img"
        self._copies = 0
        self.at.mkdir(parents=True)
        with self._file.open("wb") as file:
            file.truncate(mebibytes << 20)
        _call("mkfs.ext4", "-q", "-F", "-m", "0", str(self._file))

    def __enter__(self) -> Image:
        self.mount()
        return self

    def __exit__(self, *error: object) -> None:
        if self.at.is_mount():
            self.unmount(lazily=True)

    def mount(self) -> None:
        _call("mount", "-o", MOUNT_OPTIONS, str(self._file), str(self.at))

    def unmount(self, *, lazily: bool = False) -> None:
        """Take it away; lazily: although files of it are open."""
        _call("umount", *(["--lazy"] if lazily else []), str(self.at))

    def free(self) -> int:
        """Bytes that are free."""
        found = os.statvfs(self.at)
        return found.f_bavail * found.f_frsize

    def fill(self, left: int) -> Path:
        """Fill it but for so many bytes with one file, which is returned: delete it to have room again."""
        filler = self.at / "filler"
        with filler.open("wb") as file:
            try:
                while (room := self.free() - left) > 0:
                    os.posix_fallocate(file.fileno(), file.tell(), min(room, 1 << 20))
                    file.seek(0, os.SEEK_END)
            except OSError:
                pass
        return filler

    def copy(self, within: float = 60) -> Path:
        """What is on the disk at one moment, as if the power went away then. Call it while nobody writes files.

        The kernel may still write by itself: a copy counts only when the device did nothing meanwhile.
        """
        self._copies += 1
        copy = self._folder / f"disk-{self._copies}.img"
        give_up = time.monotonic() + within
        while time.monotonic() < give_up:
            before = self._activity()
            _call("cp", "--sparse=always", str(self._file), str(copy))
            if before == self._activity() and before[1] == "0":
                return copy
        raise AssertionError(f"the disk did not come to rest within {within:.0f} s")

    def put_in(self, copy: Path) -> None:
        """Mount a copy in place of what was mounted."""
        self.unmount(lazily=True)
        self._file.unlink()
        self._file = copy
        self.mount()

    def _activity(self) -> tuple[str, str]:
        """Writes that the device has finished, and how many are on their way."""
        device = self.at.stat().st_dev
        block = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
        stat = (block / "stat").read_text().split()
        return stat[4], stat[8]


def _call(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")
