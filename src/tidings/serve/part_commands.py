"""The bodies of the three children: `tidings api`, `tidings pipeline`, `tidings deliver`.

Each imports its part only when it is started, ends in order on SIGTERM or SIGINT, and with its supervisor.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from tidings.config import Settings
from tidings.errors import Misconfigured, Unavailable
from tidings.java import find_java
from tidings.observe import log_lines
from tidings.observe.part_status import PartStatus
from tidings.serve import folder, lifeline, sqlite_files, start_checks
from tidings.serve.exit_codes import DONE, FAILED, MISCONFIGURED
from tidings.serve.open_files import allow_many

log = logging.getLogger("tidings.serve")

_PREDECESSOR_PATIENCE = 10.0

AsyncBody = Callable[[Settings, asyncio.Event, PartStatus], Coroutine[Any, Any, None]]


def run_part(part: str, settings: Settings, lifeline_fd: int | None = None, sockets: Sequence[int] = ()) -> int:
    """Run one part until it is told to stop; the exit code. `lifeline_fd` is given by a supervisor, which holds the folder.

    So are `sockets`, for the api: open files that listen already. Raises Misconfigured where no supervisor is there to read it in
    the log.
    """
    os.umask(0o077)
    supervised = lifeline_fd is not None
    if lifeline_fd is not None:
        parent = os.getppid()
        lifeline.hold(lifeline_fd, lifeline.end_session)
        if part != "pipeline":
            lifeline.die_with_parent(parent)
    log_lines.set_up(settings.observe, part)
    allow_many()
    try:
        with ExitStack() as held:
            if not supervised:
                start_checks.check_settings(settings)
                folder.prepare(settings.data)
                held.enter_context(folder.held(settings.data, shared=True))
            else:
                folder.check_held_by(settings.data, os.getppid())
            held.enter_context(folder.part_held(settings.data, part, _PREDECESSOR_PATIENCE if supervised else 0.0))
            sqlite_files.check(settings.data)
            _run_body(part, settings, PartStatus(settings.data / folder.RUN, part), sockets)
    except Misconfigured as error:
        if not supervised:
            raise
        log.error("%s", error)
        return MISCONFIGURED
    except Unavailable as error:
        if not supervised:
            raise
        log.error("the %s part cannot run now: %s", part, error)
        return FAILED
    except Exception as error:
        reason = outside_reason(error, settings.data)
        if reason:
            log.error("the %s part cannot run now: %s", part, reason)
        else:
            log.exception("the %s part failed", part)
        return FAILED
    return DONE


def outside_reason(error: Exception, data: Path) -> str:
    """What the disk did, as a sentence, if that is why a part failed; empty: the fault is in the part."""
    if isinstance(error, FileNotFoundError) and not (data / folder.RUN).is_dir():
        return f"the data folder {data} is gone or empty while the hub runs: bring it back (a disk that is not mounted?)"
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EIO, errno.EROFS):
        return str(error)
    return ""


def _run_body(part: str, settings: Settings, board: PartStatus, sockets: Sequence[int]) -> None:
    board.flush(force=True)
    match part.partition("-")[0]:
        case "api":
            from tidings.app import run_api

            _run_async(partial(run_api, sockets=sockets), settings, board)
        case "deliver":
            from tidings.adapters import deliver_adapters
            from tidings.delivery.push.lane_owner import worker_of
            from tidings.delivery.push.process import run as run_deliver

            number = worker_of(part)
            _run_async(partial(run_deliver, adapters=deliver_adapters(settings, number), number=number), settings, board)
        case "pipeline":
            os.environ["JAVA_HOME"] = str(find_java().home)
            from tidings.adapters import pipeline_parts
            from tidings.pipeline.process import run as run_pipeline

            stop = threading.Event()
            _on_stop_signals(stop.set)
            run_pipeline(settings, stop, board, partial(pipeline_parts, settings))
        case other:
            raise ValueError(other)


def _run_async(body: AsyncBody, settings: Settings, board: PartStatus) -> None:
    import uvloop

    async def main() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        await body(settings, stop, board)

    uvloop.run(main())


def _on_stop_signals(act: Callable[[], None]) -> None:
    def handle(number: int, frame: FrameType | None) -> None:
        act()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)
