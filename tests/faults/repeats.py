"""Which repeated deliveries a kill explains. Pure: who came when, and when what was killed.

A kill may repeat what was on its way, and what was delivered since the last save. In an ordered lane the outcome of one event is
saved before the next goes out, so there it is one event, one of every key, or one batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

UNSAVED = 5.0
"""Seconds before a kill in which what arrived may not be saved yet: a save interval (0.25) and the save, on a slow machine."""

ARRIVING = 2.0
"""Seconds after a kill in which what was on its way may still arrive."""


class Repeat(NamedTuple):
    """An event that came again: when it came before, and when again."""

    subscription: str
    event: str
    before: float
    again: float


def unexplained(repeats: Sequence[Repeat], kills: Sequence[float], most: Mapping[str, int]) -> list[str]:
    """Repeats that no kill explains, and kills that repeated more than `most` events of a subscription.

    Several kills may come before an event comes again, and each of them may explain it; it counts for the one that explains least.
    """
    faults, counts = [], Counter[tuple[str, float]]()
    for one in sorted(repeats, key=lambda repeat: repeat.before):
        explaining = [at for at in kills if one.before - ARRIVING <= at <= min(one.again, one.before + UNSAVED)]
        if explaining:
            counts[one.subscription, min(explaining, key=lambda at: counts[one.subscription, at])] += 1
        else:
            faults.append(f"{one.subscription}: {one.event} came again after {one.again - one.before:.1f} s without a kill")
    for (name, _), count in counts.items():
        if count > most.get(name, count):
            faults.append(f"{name}: one kill repeated {count} events, at most {most[name]} were on their way")
    return faults
