"""The supervisor: keeps every part running, starts what died again, and stops all in order.

Control is one event loop; waiting for a process's end and reading its lines are threads. The decisions are in `restarts.py`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from tidings.config import Seconds, ServeSettings
from tidings.observe.part_status import PartState
from tidings.serve.child_process import ChildProcess, PartCommand
from tidings.serve.exit_codes import DONE, MISCONFIGURED
from tidings.serve.restarts import Death, GiveUp, RestartIn, after_death, told
from tidings.serve.terminal import Terminal

log = logging.getLogger("tidings.serve")

_FIRST_STAGE_PATIENCE = 5.0
"""How long the parts of the next stage wait for the first one to be ready; it makes the files that they read."""


class Supervisor:
    """Runs parts until `stop` is set or one can never start. Use once."""

    def __init__(
        self,
        parts: Sequence[PartCommand],
        settings: ServeSettings,
        faces: Callable[[], Mapping[str, PartState]],
        terminal: Terminal,
    ) -> None:
        self._parts = sorted(parts, key=lambda part: part.stage)
        self._settings = settings
        self._faces = faces
        self._terminal = terminal
        self._children: dict[str, ChildProcess] = {}
        self._ready_since: dict[str, tuple[int, float]] = {}
        self._ever_ready: set[str] = set()
        self._given_up: list[str] = []
        # The writing end stays here and is never inherited; when this process is gone, every child reads the end.
        self._lifeline, self._held = os.pipe()
        self.restarts: dict[str, int] = dict.fromkeys((part.name for part in parts), 0)

    async def run(self, stop: asyncio.Event, hurry: asyncio.Event, on_ready: Callable[[], None]) -> int:
        """Start the parts, keep them running until `stop`, end them in order (at once when `hurry` is set); the exit code."""
        watching = asyncio.create_task(self._watch(on_ready))
        keepers: dict[str, asyncio.Task[None]] = {}
        for part in self._parts:
            await self._wait_for_stage_before(part, stop)
            if not stop.is_set():
                keepers[part.name] = asyncio.create_task(self._keep(part, stop))
        await stop.wait()
        watching.cancel()
        await self._stop_in_order(keepers, hurry)
        os.close(self._held)
        os.close(self._lifeline)
        return MISCONFIGURED if self._given_up else DONE

    async def _wait_for_stage_before(self, part: PartCommand, stop: asyncio.Event) -> None:
        before = {other.name for other in self._parts if other.stage < part.stage}
        until = time.monotonic() + _FIRST_STAGE_PATIENCE
        while not before <= self._ever_ready and time.monotonic() < until and not stop.is_set():
            await asyncio.sleep(0.02)
            self._look()

    async def _keep(self, part: PartCommand, stop: asyncio.Event) -> None:
        row = 0
        while not stop.is_set():
            child = self._children[part.name] = ChildProcess(part, self._lifeline, self._terminal)
            code = await child.ended()
            if stop.is_set():
                return
            match after_death(self._death(child, code), row, part.name in self._ever_ready, self._settings_for(part)):
                case GiveUp():
                    log.error("the %s part refuses to start; the hub stops", part.name)
                    self._given_up.append(part.name)
                    stop.set()
                case RestartIn(seconds, row):
                    self.restarts[part.name] += 1
                    log.warning("the %s part %s; it starts again in %.1f s", part.name, told(code), seconds)
                    with suppress(TimeoutError):
                        await asyncio.wait_for(stop.wait(), seconds)

    def _settings_for(self, part: PartCommand) -> ServeSettings:
        return replace(self._settings, restart_max=Seconds(min(self._settings.restart_max, part.restart_max)))

    def _death(self, child: ChildProcess, code: int) -> Death:
        pid, since = self._ready_since.get(child.part.name, (0, 0.0))
        return Death(code, time.monotonic() - since if pid == child.pid else None)

    async def _watch(self, on_ready: Callable[[], None]) -> None:
        """Follow the boards; tell once when every part is ready for the first time."""
        told_ready = False
        while True:
            all_ready = self._look()
            if all_ready and not told_ready:
                told_ready = True
                on_ready()
            await asyncio.sleep(2.0 if all_ready else 0.2)

    def _look(self) -> bool:
        faces = self._faces()
        for name, child in self._children.items():
            face = faces.get(name)
            if face is None or face.pid != child.pid or not face.ready:
                self._ready_since.pop(name, None)
            elif name not in self._ready_since:
                self._ready_since[name] = (child.pid, time.monotonic())
                self._ever_ready.add(name)
        return len(self._ready_since) == len(self._parts)

    async def _stop_in_order(self, keepers: Mapping[str, asyncio.Task[None]], hurry: asyncio.Event) -> None:
        """The first stage stops taking requests before the next ones end. What does not stop in time is killed."""
        for stage in sorted({part.stage for part in self._parts}):
            names = [part.name for part in self._parts if part.stage == stage and part.name in keepers]
            for name in names:
                if name in self._children and not keepers[name].done():
                    self._children[name].ask_to_stop()
            await self._ended(names, keepers, hurry)
        await asyncio.gather(*keepers.values(), return_exceptions=True)

    async def _ended(self, names: Sequence[str], keepers: Mapping[str, asyncio.Task[None]], hurry: asyncio.Event) -> None:
        ending = [keepers[name] for name in names]
        if not ending:
            return
        watched: set[asyncio.Task[Any]] = {asyncio.create_task(hurry.wait()), asyncio.create_task(asyncio.wait(ending))}
        await asyncio.wait(watched, timeout=self._settings.stop_timeout, return_when=asyncio.FIRST_COMPLETED)
        for task in watched:
            task.cancel()
        for name in names:
            if not keepers[name].done() and name in self._children:
                log.warning("the %s part did not stop in time and is killed", name)
                self._children[name].kill()
        await asyncio.wait(ending)
