"""Which repeated deliveries a disturbance explains. Pure: who came when, and when what was disturbed.

A kill may repeat what was on its way, and what was delivered since the last save. In an ordered lane the outcome of one event is
saved before the next goes out, so there it is one event, one of every key, or one batch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

UNSAVED = 5.0
"""Seconds before a kill in which what arrived may not be saved yet: a save interval (0.25) and the save, on a slow machine."""

ARRIVING = 2.0
"""Seconds after a kill in which what was on its way may still arrive."""


class Repeat(NamedTuple):
    """An event that was taken again: when it was taken before, and when again."""

    subscription: str
    event: str
    before: float
    again: float


class Disturbance(NamedTuple):
    """Something that may repeat deliveries: a kill, or a process that stood still. No subscription: it concerns all of them."""

    began: float
    ended: float
    subscription: str = ""

    def explains(self, repeat: Repeat) -> bool:
        concerned = self.subscription in ("", repeat.subscription)
        return concerned and self.began <= repeat.again and self.began - UNSAVED <= repeat.before <= self.ended + ARRIVING


def unexplained(repeats: Sequence[Repeat], disturbances: Sequence[Disturbance], most: Mapping[str, int]) -> list[str]:
    """Repeats that no disturbance explains, and those beyond the `most` events of a subscription that one may repeat."""
    faults: list[str] = []
    reasons: dict[str, dict[Repeat, list[Disturbance]]] = defaultdict(dict)
    for one in repeats:
        found = [disturbance for disturbance in disturbances if disturbance.explains(one)]
        if found:
            reasons[one.subscription][one] = found
        else:
            faults.append(f"{one.subscription}: {one.event} came again after {one.again - one.before:.1f} s without a reason")
    for name, found_for in reasons.items():
        left = _left_over(found_for, most.get(name, len(found_for)))
        if left:
            events = ", ".join(one.event for one in left[:5])
            faults.append(f"{name}: {len(left)} events more than were on their way came again ({events})")
    return faults


def _left_over(reasons: Mapping[Repeat, list[Disturbance]], most: int) -> list[Repeat]:
    """What is left when every disturbance explains `most` repeats: those first that no later one could explain."""
    left = sorted(reasons, key=lambda one: max(disturbance.began for disturbance in reasons[one]))
    for disturbance in sorted({one for found in reasons.values() for one in found}):
        explained = [one for one in left if disturbance in reasons[one]][:most]
        left = [one for one in left if one not in explained]
    return left
