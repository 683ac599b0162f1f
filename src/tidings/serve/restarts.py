"""What to do when a part has died: start it again after a growing wait, or give up because it can never start like this."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tidings.config import ServeSettings
from tidings.serve.exit_codes import MISCONFIGURED


@dataclass(frozen=True, slots=True)
class Death:
    """How one life of a part ended. `ready_for` is how long it was ready, None when it never was in this life."""

    exit_code: int
    ready_for: float | None


@dataclass(frozen=True, slots=True)
class RestartIn:
    """Start it again after `seconds`. `row` counts the deaths without a stable time between them."""

    seconds: float
    row: int


@dataclass(frozen=True, slots=True)
class GiveUp:
    """It refused to start; a person has to change something."""


Verdict: TypeAlias = RestartIn | GiveUp


def after_death(death: Death, row: int, was_ever_ready: bool, settings: ServeSettings) -> Verdict:
    """The verdict after a death that follows `row` others.

    A part that worked before is never given up, whatever it says: the others go on, and events wait in the log.
    """
    if death.exit_code == MISCONFIGURED and not was_ever_ready:
        return GiveUp()
    if death.ready_for is not None and death.ready_for >= settings.restart_reset:
        row = 0
    # The power is bounded, so that a part that dies for days makes no huge number.
    wait = min(settings.restart_first * 2 ** min(row, 32), settings.restart_max)
    return RestartIn(wait, row + 1)


def told(exit_code: int) -> str:
    """How it ended, for people."""
    return f"was killed by signal {-exit_code}" if exit_code < 0 else f"ended with exit code {exit_code}"
