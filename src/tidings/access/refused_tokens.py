"""Refused tokens: each is counted, and a few of them are logged with the address they came from. Never the token itself."""

from __future__ import annotations

import logging
from collections.abc import Callable

from tidings.clock import Clock

WINDOW = 60.0
"""Seconds in which one address leaves one line at the most."""

LINES = 10
"""Lines in one window at the most, however many addresses there are: guessing must not fill the disk."""

log = logging.getLogger("tidings.access")


class RefusedTokens:
    """Notes refused tokens. `count` is called for each. For one event loop."""

    def __init__(self, clock: Clock, count: Callable[[], None] = lambda: None) -> None:
        self._clock = clock
        self._count = count
        self._window_ends = 0.0
        self._logged: set[str] = set()
        self._not_logged = 0

    def note(self, why: str, address: str) -> None:
        """A token was refused for this reason; `address` is empty where it is not known."""
        self._count()
        if self._clock.monotonic() >= self._window_ends:
            self._window_ends = self._clock.monotonic() + WINDOW
            self._logged.clear()
        if address in self._logged or len(self._logged) >= LINES:
            self._not_logged += 1
            return
        self._logged.add(address)
        more = f"; {self._not_logged} others were not logged since the last such line" if self._not_logged else ""
        log.warning("refused the token of a request from %s: %s%s", address or "an unknown address", why, more)
        self._not_logged = 0
