"""Children end when their supervisor dies, however it dies.

The supervisor keeps the writing end of a pipe and every child the reading end: the kernel closes it whatever happens, so a child
reads the end of the file. On Linux the kernel is also asked to kill a child without descendants at once.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

_PR_SET_PDEATHSIG = 1


def hold(fd: int, gone: Callable[[], object]) -> None:
    """Call `gone` in a thread once nobody holds the other end of the pipe `fd`; at once when that is so already."""
    os.set_inheritable(fd, False)
    threading.Thread(target=_wait, args=(fd, gone), name="lifeline", daemon=True).start()


def _wait(fd: int, gone: Callable[[], object]) -> None:
    with contextlib.suppress(OSError):
        while os.read(fd, 64):
            pass
    gone()


def die_with_parent(parent: int) -> None:
    """Ask the kernel to kill this process with its parent (Linux; elsewhere the lifeline alone does it).

    Not for a process with descendants: it would die before it could end them.
    """
    if not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def end_session() -> None:
    """Kill every process of this session, this one last: the JVM and Spark's Python workers, which have groups of their own."""
    kill_session(os.getsid(0), spare=os.getpid())
    os.kill(os.getpid(), signal.SIGKILL)


def kill_session(session: int, spare: int = 0) -> None:
    """Kill what is left of a session but `spare`. Looks again until nothing is left, since they may fork meanwhile."""
    if not Path("/proc/self/stat").exists():
        # Only its first process group is known here; the rest ends with its pipes.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(session, signal.SIGKILL)
        return
    for _ in range(10):
        members = [pid for pid in session_members(session) if pid != spare]
        for pid in members:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not members:
            return


def session_members(session: int) -> Iterator[int]:
    """The living processes of a session, by /proc."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and _session_of(folder) == session:
            yield int(folder.name)


def _session_of(folder: Path) -> int:
    """The session of a process, from the sixth field of its stat line; 0 when it is gone or only waits to be reaped."""
    try:
        after_name = (folder / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if after_name[0] in "ZX" else int(after_name[3])
