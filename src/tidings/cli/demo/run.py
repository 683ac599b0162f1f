"""Runs the demo: its hub as a process of its own, the scene, and the view, until Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

from tidings.cli.demo import view
from tidings.cli.demo.scene import MARKER, Scene
from tidings.cli.terminal.output import print_error, say
from tidings.client.http import HubClient
from tidings.config import Settings
from tidings.errors import DataFolderUnusable, HubProblem, HubUnreachable
from tidings.serve import folder, start_checks
from tidings.serve.child_process import python_environ
from tidings.serve.exit_codes import DONE, FAILED
from tidings.serve.hub import url_of

_STOP_PATIENCE = 60.0
_PLAIN_EVERY = 2.0
_LIVE_EVERY = 0.5


def run(settings: Settings, config: Path | None, seconds: float | None) -> int:
    """Run the demo until Ctrl-C (or for so many seconds); the exit code. Raises Misconfigured before anything is started."""
    if settings.server.port == 0:
        settings = replace(settings, server=replace(settings.server, port=start_checks.free_port(settings.server.host)))
    start_checks.check_settings(settings)
    prepare(settings.data)
    signal.signal(signal.SIGTERM, _interrupt)
    with _hub(settings, config) as hub:
        scene = Scene(url_of(settings))
        try:
            if not _wait_until_live(hub, scene.url):
                return _failed(hub, settings)
            scene.start()
            show = _show_live if sys.stdout.isatty() else _show_plain
            show(hub, scene, None if seconds is None else time.monotonic() + seconds)
        except KeyboardInterrupt:
            pass
        finally:
            scene.stop()
        if hub.poll() is not None:
            return _failed(hub, settings)
        say("stopping the hub …")
    say("stopped")
    return DONE


def prepare(data: Path) -> None:
    """Make the data folder, marked as the demo's. Raises DataFolderUnusable for the data of a hub that the demo did not make."""
    made_here = folder.version_of(data) is None
    folder.prepare(data)
    if made_here:
        (data / MARKER).write_text("The demo made this hub; it may use it again.\n")
    elif not (data / MARKER).exists():
        raise DataFolderUnusable(
            f"{data} holds the data of a hub that the demo did not make; choose another folder with --data (make run DATA=…)"
        )


@contextmanager
def _hub(settings: Settings, config: Path | None) -> Iterator[subprocess.Popen[bytes]]:
    """The hub as a process that ends with this one, however this one ends. Its lines go to a file."""
    ours, held = os.pipe()
    command = [sys.executable, "-m", "tidings.cli", "serve", "--data", str(settings.data), "--log-format", "text"]
    command += ["--host", settings.server.host, "--port", str(settings.server.port), "--lifeline", str(ours)]
    command += ["--config", str(config)] if config else []
    with _log_file(settings).open("wb") as out:
        # A session of its own: Ctrl-C reaches only the demo, which then stops the hub in order.
        hub = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env={**os.environ, **python_environ()},
            pass_fds=(ours,),
            start_new_session=True,
        )
    try:
        yield hub
    finally:
        _stop(hub)
        os.close(held)
        os.close(ours)


def _stop(hub: subprocess.Popen[bytes]) -> None:
    give_up = time.monotonic() + _STOP_PATIENCE
    hub.terminate()
    while hub.poll() is None and time.monotonic() < give_up:
        try:
            hub.wait(0.2)
        except subprocess.TimeoutExpired:
            continue
        except KeyboardInterrupt:
            hub.terminate()
    hub.kill()
    hub.wait()


def _log_file(settings: Settings) -> Path:
    return settings.data / folder.RUN / "demo.log"


def _wait_until_live(hub: subprocess.Popen[bytes], url: str) -> bool:
    while hub.poll() is None:
        try:
            HubClient(url, timeout=2).get("/health/live")
        except (HubUnreachable, HubProblem):
            time.sleep(0.1)
        else:
            # Something else on the port would answer too; then our hub has ended by now, or is about to.
            time.sleep(0.2)
            return hub.poll() is None
    return False


def _failed(hub: subprocess.Popen[bytes], settings: Settings) -> int:
    """The hub ended by itself: show what it said last."""
    log = _log_file(settings)
    for line in log.read_text("utf-8", "replace").splitlines()[-10:]:
        print_error(line)
    code = hub.wait()
    if code < 0:
        print_error(f"the hub was killed by signal {-code}; its lines are in {log}")
    return code if code > 0 else FAILED


def _status(client: HubClient) -> Any:
    try:
        return client.get("/api/status")
    except (HubUnreachable, HubProblem):
        return view.STARTING


def _show_live(hub: subprocess.Popen[bytes], scene: Scene, until: float | None) -> None:
    from rich.live import Live

    client = HubClient(scene.url, timeout=5)
    with Live(view.live(scene, view.STARTING), auto_refresh=False, screen=True) as shown:
        while hub.poll() is None and (until is None or time.monotonic() < until):
            shown.update(view.live(scene, _status(client)), refresh=True)
            time.sleep(_LIVE_EVERY)


def _show_plain(hub: subprocess.Popen[bytes], scene: Scene, until: float | None) -> None:
    client = HubClient(scene.url, timeout=5)
    for line in view.introduction(scene.url):
        say(line)
    while hub.poll() is None and (until is None or time.monotonic() < until):
        say(view.line(scene, _status(client)))
        time.sleep(_PLAIN_EVERY)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
