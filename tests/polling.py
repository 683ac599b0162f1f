"""Waiting for what happens elsewhere: ask again and again, with a bound that a loaded machine keeps."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PAUSE = 0.01
"""Seconds between two questions."""

PATIENCE = 4
"""How many times as long as it says a test waits before it gives up: a starved machine is slow, not wrong."""

SOMETHING = "what the test waits for"


def until(holds: Callable[[], T], what: str | Callable[[], str] = SOMETHING, *, within: float = 60) -> T:
    """The first true answer of `holds`. Raises AssertionError with `what` after `within` seconds."""
    give_up = time.monotonic() + PATIENCE * within
    while not (found := holds()):
        _check(give_up, within, what)
        time.sleep(PAUSE)
    return found


async def until_async(holds: Callable[[], T], what: str | Callable[[], str] = SOMETHING, *, within: float = 30) -> T:
    """The same on an event loop, which goes on meanwhile."""
    give_up = time.monotonic() + PATIENCE * within
    while not (found := holds()):
        _check(give_up, within, what)
        await asyncio.sleep(PAUSE)
    return found


def _check(give_up: float, within: float, what: str | Callable[[], str]) -> None:
    if time.monotonic() >= give_up:
        raise AssertionError(f"not within {within:g} s: {what if isinstance(what, str) else what()}")
