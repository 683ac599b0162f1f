"""Wake-up between processes: a Unix datagram says "look again". It is only a hint; whoever waits also looks once a second.

Every listener has its own socket file in its channel's folder, so one ring reaches many processes. A lost ring costs
at most one poll; a ring too many costs one look.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import itertools
import os
import select
import socket
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

_PATH_BYTES = 100
_LOOK_AGAIN = 1.0
_names = itertools.count()


class Bell:
    """Rings every listener of a channel. Never blocks, never raises. One per thread."""

    def __init__(self, folder: Path, channel: str) -> None:
        self._room = room(folder, channel)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._listeners: list[str] = []
        self._seen = (-1, 0.0)

    def ring(self) -> None:
        """Tell all listeners to look again. A listener whose process is gone loses its socket file."""
        with contextlib.suppress(OSError):
            self._find_listeners()
            for path in self._listeners:
                self._tell(path)

    def close(self) -> None:
        """Release the socket. Safe to call twice."""
        self._socket.close()

    def _find_listeners(self) -> None:
        """Read the folder again when it changed, or after a second: its time stamp is coarse."""
        changed, read_at = self._seen
        now = time.monotonic()
        stamp = self._room.stat().st_mtime_ns
        if stamp != changed or now - read_at > _LOOK_AGAIN:
            self._listeners = [entry.path for entry in os.scandir(self._room) if entry.name.endswith(".sock")]
            self._seen = (stamp, now)

    def _tell(self, path: str) -> None:
        try:
            self._socket.sendto(b"!", path)
        except ConnectionRefusedError:
            with contextlib.suppress(OSError):
                Path(path).unlink()
        except OSError:
            # A full queue holds a hint already; a missing file is a listener that has just left.
            pass


class WakeListener:
    """Hears a channel. Rings that come while nobody waits are kept, so a wait after them returns at once.

    One waiter at a time. Use it as: look; when there was nothing, wait; look again.
    """

    def __init__(self, folder: Path, channel: str) -> None:
        place = room(folder, channel)
        self._path = place / f"{os.getpid()}-{next(_names)}-{time.monotonic_ns():x}.sock"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        # Without a socket the one-second poll behind every hint still works.
        with contextlib.suppress(OSError):
            self._socket.bind(str(self._path))
        self._stop_hearing: Callable[[], object] | None = None
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)

    def wait(self, timeout: float) -> bool:
        """Wait for a ring, at most `timeout` seconds; whether one came."""
        if not self._poll.poll(max(0, int(timeout * 1000))):
            return False
        return self._drain()

    async def wait_async(self, timeout: float) -> bool:
        """The same, without blocking the event loop."""
        if self._drain():
            return True
        loop = asyncio.get_running_loop()
        rung = loop.create_future()
        loop.add_reader(self._socket.fileno(), _note, rung)
        self._stop_hearing = partial(loop.remove_reader, self._socket.fileno())
        try:
            async with asyncio.timeout(timeout):
                await rung
        except TimeoutError:
            return False
        finally:
            self._deaf()
        return self._drain()

    def close(self) -> None:
        """Leave the channel. Safe to call twice."""
        if self._socket.fileno() < 0:
            return
        self._deaf()
        self._socket.close()
        with contextlib.suppress(OSError):
            self._path.unlink()

    def _deaf(self) -> None:
        """Take the socket out of the event loop, before it is closed and its number means another file."""
        if self._stop_hearing is not None:
            self._stop_hearing()
            self._stop_hearing = None

    def _drain(self) -> bool:
        """Take all kept rings together; whether there was one."""
        heard = False
        with contextlib.suppress(BlockingIOError):
            while True:
                self._socket.recv(1)
                heard = True
        return heard


def room(folder: Path, channel: str) -> Path:
    """The folder of a channel's sockets, made if need be: below the data folder's `run/`, or a short one when that is too long.

    A socket's path may have about 100 bytes. The short folder is named after a hash of the data folder and belongs to this user.
    """
    place = folder.absolute() / "run" / channel
    if len(os.fsencode(place)) + 48 > _PATH_BYTES:
        place = _short_folder(folder) / channel
    with contextlib.suppress(OSError):
        place.mkdir(parents=True, exist_ok=True)
    return place


def _short_folder(folder: Path) -> Path:
    """A private folder in the system's temporary folder. One that belongs to somebody else is not used."""
    digest = hashlib.blake2b(os.fsencode(folder.resolve()), digest_size=8).hexdigest()
    place = Path(tempfile.gettempdir()) / f"tidings-{os.getuid()}-{digest}"
    with contextlib.suppress(OSError):
        place.mkdir(mode=0o700, exist_ok=True)
        if place.lstat().st_uid == os.getuid() and not place.is_symlink():
            return place
    return place / "not-ours"


def _note(rung: asyncio.Future[None]) -> None:
    if not rung.done():
        rung.set_result(None)
