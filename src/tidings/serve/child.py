"""One life of one part: a process in a session of its own, whose lines go to the terminal."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass

from tidings.serve import lifeline
from tidings.serve.terminal import Terminal


@dataclass(frozen=True, slots=True)
class Part:
    """What is to be kept running. Parts of a lower stage are started first and stopped first.

    `{lifeline}` in the command becomes the number of the pipe that ends with the supervisor.
    """

    name: str
    command: tuple[str, ...]
    stage: int = 0
    environ: Mapping[str, str] | None = None


class Child:
    """A running part. Made in the main thread: Linux ties the death signal of a child to the thread that made it."""

    def __init__(self, part: Part, lifeline_fd: int, terminal: Terminal) -> None:
        self.part = part
        self._process = subprocess.Popen(
            [word.format(lifeline=lifeline_fd) if word == "{lifeline}" else word for word in part.command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(part.environ or {})},
            pass_fds=(lifeline_fd,),
            start_new_session=True,
        )
        threading.Thread(target=self._forward, args=(terminal,), name=f"lines of {part.name}", daemon=True).start()

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

    def _forward(self, terminal: Terminal) -> None:
        assert self._process.stdout is not None
        for raw in self._process.stdout:
            terminal.line(self.part.name, raw.decode("utf-8", "replace").rstrip("\r\n"))
