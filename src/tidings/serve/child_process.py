"""One life of one part: a process in a session of its own, whose lines go to the terminal."""

from __future__ import annotations

import asyncio
import fcntl
import math
import os
import signal
import subprocess
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import tidings
from tidings.serve import lifeline
from tidings.serve.terminal import Terminal

_PIPE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class PartCommand:
    """What is to be kept running. Parts of a lower stage are started first and stopped first.

    `{lifeline}` in the command becomes the number of the pipe that ends with the supervisor. `sockets` are open files that it
    inherits. `restart_max`: seconds that it may be away at the longest before it is started again, whatever the settings say.
    """

    name: str
    command: tuple[str, ...]
    stage: int = 0
    environ: Mapping[str, str] | None = None
    sockets: tuple[int, ...] = ()
    restart_max: float = math.inf


def python_environ() -> dict[str, str]:
    """What the Python processes of a hub need: nothing is imported from the folder they happen to be started in.

    What runs there is the code that runs here, also where that was not installed.
    """
    home = Path(tidings.__file__).parents[1]
    installed = home.name in ("site-packages", "dist-packages")
    path = [*([] if installed else [str(home)]), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"PYTHONSAFEPATH": "1", "PYTHONUNBUFFERED": "1", **({"PYTHONPATH": os.pathsep.join(path)} if path else {})}


class ChildProcess:
    """A running part. Made in the main thread: Linux ties the death signal of a child to the thread that made it."""

    def __init__(self, part: PartCommand, lifeline_fd: int, terminal: Terminal) -> None:
        self.part = part
        reader, writer = output_pipe()
        try:
            self._process = subprocess.Popen(
                [word.format(lifeline=lifeline_fd) if word == "{lifeline}" else word for word in part.command],
                stdin=subprocess.DEVNULL,
                stdout=writer,
                stderr=writer,
                env={**os.environ, **(part.environ or {})},
                pass_fds=(lifeline_fd, *part.sockets),
                start_new_session=True,
            )
        except BaseException:
            os.close(reader)
            raise
        finally:
            os.close(writer)
        forward = (terminal, part.name, reader)
        threading.Thread(target=_forward, args=forward, name=f"lines of {part.name}", daemon=True).start()

    @property
    def pid(self) -> int:
        return self._process.pid

    async def ended(self) -> int:
        """Wait for its end; its exit code (negative: the signal). Nothing of its session is left then."""
        code = await asyncio.get_running_loop().run_in_executor(None, self._process.wait)
        lifeline.kill_session(self.pid)
        return code

    def ask_to_stop(self) -> None:
        """Ask for an orderly end. Safe when it has ended."""
        self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it and everything it started, now. Safe when it has ended."""
        self._process.kill()
        lifeline.kill_session(self.pid)


def output_pipe() -> tuple[int, int]:
    """A pipe for the lines of a part: reading and writing end. Writing never waits, for the JVM and Spark's workers neither.

    Should this process stand still, lines are lost; a part that waited for it would stand still as well.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    # Room for a burst. Only Linux can do it, and only up to what the machine allows.
    with suppress(OSError, AttributeError):
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    return reader, writer


def _forward(terminal: Terminal, name: str, reader: int) -> None:
    with os.fdopen(reader, "rb") as source:
        for raw in source:
            terminal.line(name, raw.decode("utf-8", "replace").rstrip("\r\n"))
