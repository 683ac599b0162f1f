"""`tidings serve`: checks, the data folder, the supervisor with its three parts, and the signals that stop it."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tidings.config import Settings
from tidings.data_files import write_durably
from tidings.delivery.push.lane_owner import part_name
from tidings.java import Java
from tidings.observe import log_lines
from tidings.observe.part_status import read_faces
from tidings.serve import folder, lifeline, sqlite_files, start_checks
from tidings.serve.child_process import PartCommand, python_environ
from tidings.serve.supervisor import Supervisor
from tidings.serve.terminal import Terminal, TerminalHandler
from tidings.server.listeners import bound, close_all

log = logging.getLogger("tidings.serve")

STAGES = {"api": 0, "pipeline": 1, "deliver": 1}

API_RESTART_MAX = 2.0
"""Seconds before the api is started again, however often it died: nobody can publish meanwhile."""


def serve(settings: Settings, config: Path | None = None, lifeline_fd: int | None = None) -> int:
    """Run a whole hub until it is told to stop; the exit code. Raises Misconfigured before anything is started."""
    began = time.monotonic()
    os.umask(0o077)
    settings = replace(settings, data=settings.data.absolute())
    java = start_checks.check_all(settings)
    with folder.held(settings.data):
        folder.wait_for_parts_to_end(settings.data)
        sqlite_files.check(settings.data)
        _forget_boards(settings.data / folder.RUN)
        sockets = bound(settings)
        if settings.server.port == 0:
            settings = replace(settings, server=replace(settings.server, port=sockets[0].getsockname()[1]))
        form = log_lines.format_of(settings.observe, terminal=sys.stdout.isatty())
        terminal = Terminal(as_json=form == "json")
        _log_to(terminal, settings, form)
        try:
            parts = _parts(settings, java, form, _kept(config, settings), sockets)
            return asyncio.run(_run(settings, parts, terminal, _Given(lifeline_fd, began, sockets)))
        finally:
            close_all(sockets)
            terminal.close()


class _Given(NamedTuple):
    """What a start was given: the pipe of whoever watches over it, its time, and the sockets."""

    lifeline: int | None
    began: float
    sockets: Sequence[socket.socket]


async def _run(settings: Settings, parts: list[PartCommand], terminal: Terminal, given: _Given) -> int:
    stop, hurry = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def asked() -> None:
        if stop.is_set():
            hurry.set()
        else:
            log.info("stopping: no more requests, then routing and delivery end (once more to stop at once)")
            stop.set()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, asked)
    if given.lifeline is not None:
        lifeline.hold(given.lifeline, partial(loop.call_soon_threadsafe, stop.set))
    address = url_of(settings)
    log.info("starting on %s, data in %s", address, settings.data)
    supervisor = Supervisor(parts, settings.serve, lambda: read_faces(settings.data / folder.RUN), terminal)
    leaving = asyncio.create_task(_leave_ports(stop, given.sockets))
    code = await supervisor.run(
        stop,
        hurry,
        lambda: log.info("ready after %.1f s: %s (API page %s/api/docs)", time.monotonic() - given.began, address, address),
    )
    await leaving
    log.info("stopped")
    return code


async def _leave_ports(stop: asyncio.Event, sockets: Sequence[socket.socket]) -> None:
    """Once the hub stops, nobody shall wait on its ports for an api that does not come again."""
    await stop.wait()
    close_all(sockets)


def url_of(settings: Settings) -> str:
    """The address of the hub as a client on this machine writes it."""
    host = settings.server.host
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "": "127.0.0.1"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{host}:{settings.server.port}"


def _parts(
    settings: Settings, java: Java, form: str, config: Path | None, sockets: Sequence[socket.socket] = ()
) -> list[PartCommand]:
    flags = ["--data", str(settings.data), "--host", settings.server.host, "--port", str(settings.server.port)]
    flags += ["--config", str(config)] if config else []
    flags += ["--log-format", form, "--lifeline", "{lifeline}"]
    environ = {"JAVA_HOME": str(java.home), **python_environ()}
    command = (sys.executable, "-m", "tidings.cli")
    numbers = tuple(one.fileno() for one in sockets)
    listening = ("--sockets", ",".join(map(str, numbers))) if numbers else ()
    made = [PartCommand("api", (*command, "api", *flags, *listening), STAGES["api"], environ, numbers, API_RESTART_MAX)]
    made += [PartCommand(name, (*command, name, *flags), stage, environ) for name, stage in STAGES.items() if name != "api"]
    for worker in range(1, settings.deliver.workers):
        deliver = (*command, "deliver", *flags, "--worker", str(worker))
        made.append(PartCommand(part_name(worker), deliver, STAGES["deliver"], environ))
    return made


def _kept(config: Path | None, settings: Settings) -> Path | None:
    """A copy of the settings file as read now: a part that is started again later must not get other settings than the rest."""
    if config is None:
        return None
    copy = settings.data / folder.RUN / "config.toml"
    try:
        # It may hold access.key: for its owner only.
        write_durably(copy, config.read_bytes())
    except OSError as error:
        raise folder.unusable(copy, error) from error
    return copy


def _forget_boards(run: Path) -> None:
    """Boards of a former hub say nothing about this one."""
    for path in run.glob("*.json"):
        path.unlink(missing_ok=True)


def _log_to(terminal: Terminal, settings: Settings, form: str) -> None:
    root = logging.getLogger()
    root.handlers[:] = [TerminalHandler(terminal, log_lines.JsonLines("hub") if form == "json" else log_lines.TextLines())]
    root.setLevel(log_lines.level_of(settings.observe))
