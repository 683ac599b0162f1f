"""Finds a lane that has something to send while nobody holds it. None should ever be found: each one is a fault of ours."""

from __future__ import annotations

import math

from tidings.clock import Instant
from tidings.delivery.push.lane.choice import NOTHING, Wait, choose
from tidings.delivery.push.lane.push_lane import PushLane

NEGLECT = 5.0
"""Seconds after which a lane that nobody held counts as forgotten."""


def neglected(lane: PushLane, now: Instant, at: float, *, saving: bool) -> bool:
    """Whether nobody has held what the lane has to send for a while. To be asked every few seconds.

    `saving`: a save is under way that the lane waits for.
    """
    if not _is_idle(lane, at) or saving or not _has_something(lane, now, at):
        lane.neglected = math.inf
        return False
    lane.neglected = min(lane.neglected, at)
    if at - lane.neglected < NEGLECT:
        return False
    lane.neglected = math.inf
    return True


def _is_idle(lane: PushLane, at: float) -> bool:
    """Whether the lane may send, and nothing under way would make it."""
    busy = lane.queued or lane.inflight or lane.policy is None or lane.listener is not None
    if busy or not lane.pushing or (lane.pace.limited and lane.pace.wait(at) > 0):
        return False
    return not any(window.reading or window.loading for window in lane.state.windows) and not lane.state.again.loading


def _has_something(lane: PushLane, now: Instant, at: float) -> bool:
    state, policy = lane.state, lane.policy
    assert policy is not None
    if state.closing or state.barriers or state.abandoned:
        return True
    choice = choose(state, lane.allowed(now, at, False), policy.batch)
    if choice != NOTHING and not isinstance(choice, Wait):
        return True
    held = lane.waited_held or lane.pace.back_wait(at) > 0
    return any(state.first_of_line(item) and not (held and state.in_waited(item)) for item in state.overdue(at))
