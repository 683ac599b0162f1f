"""Whose turn it is: fair between lanes, bounded in all, and never starved by endpoints that do not answer, or late.

* Lanes with work stand in a queue and send one entry a turn.
* A lane's window grows by one with every answer up to its limit, and halves when no answer came or one that says "too much".
* A lane may not hold more attempts than are free, so that the last slots are never taken by lanes that have many already.
* Lanes whose last attempt got no answer, or a slow one, share at most half of all slots.
* They and lanes of which nothing is known yet share three quarters: the rest stays free for lanes that answer quickly.
"""

from __future__ import annotations

from collections import deque

from tidings.delivery.push.lane.push_lane import EndpointStanding, PushLane

LEAST_WINDOW = 4

SLOW_ANSWER = 2.0
"""Seconds after which an answer is a slow one."""

QUICK, NEW, SLOW = EndpointStanding
AFTER = {QUICK: (NEW, SLOW, QUICK), NEW: (SLOW, QUICK, NEW), SLOW: (QUICK, NEW, SLOW)}
"""Who is asked after whom, in turn. Written out: it is gone through for every delivery."""


class Schedule:
    """Hands out turns. `busy` is how many attempts are on their way."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._slow_share = max(1, total // 2)
        self._unproven_share = max(1, total - total // 4)
        self._turns: list[deque[PushLane]] = [deque() for _ in EndpointStanding]
        self._last: EndpointStanding = SLOW
        self._busy = [0 for _ in EndpointStanding]
        self.busy = 0
        self.held = False

    def offer(self, lane: PushLane) -> None:
        """The lane may have something to send. Offering twice is the same as once."""
        if lane.listener is not None:
            lane.listener.wake()
        if not lane.queued and lane.pushing and self._may_begin(lane):
            lane.queued = True
            self._turns[lane.standing].append(lane)

    def turn(self, slow: bool = True) -> PushLane | None:
        """The lane that may begin one attempt now; it is no longer queued. None: nobody, or no slot is free.

        `slow`: whether lanes that answer late, or not at all, have turns.
        """
        while not self.held and self.busy < self._total:
            standing = self._next_standing(slow)
            if standing is None:
                return None
            lane = self._turns[standing].popleft()
            lane.queued = False
            if lane.standing is not standing:
                # More is known of it by now.
                self.offer(lane)
            # A lane over its allowance is offered again when one of its own attempts ends.
            elif lane.pushing and self._may_begin(lane):
                return lane
        return None

    def begin(self, lane: PushLane) -> None:
        """The lane begins an attempt."""
        lane.inflight += 1
        self.busy += 1
        self._busy[lane.standing] += 1

    def end(self, lane: PushLane, answered: bool, pressed: bool = False, seconds: float = 0.0) -> None:
        """An attempt of the lane ended after so many seconds; whether an answer came, and whether it asked for less, decides
        how many come next.
        """
        lane.inflight -= 1
        self.busy -= 1
        limit = lane.policy.inflight if lane.policy is not None else 1
        if not answered or pressed:
            lane.window = min(limit, max(LEAST_WINDOW, lane.window / 2))
        elif lane.window < limit:
            lane.window += 1
        before, lane.standing = lane.standing, QUICK if answered and seconds < SLOW_ANSWER else SLOW
        self._busy[before] -= 1
        if lane.standing is not before:
            # The attempts still on their way change sides together with the lane.
            self._busy[before] -= lane.inflight
            self._busy[lane.standing] += lane.inflight

    def _next_standing(self, slow: bool) -> EndpointStanding | None:
        """Whose turn it is among those who have work and a free slot."""
        for standing in AFTER[self._last]:
            if self._turns[standing] and (slow or standing is not SLOW) and self._free_for(standing) > 0:
                self._last = standing
                return standing
        return None

    def _free_for(self, standing: EndpointStanding) -> int:
        """The slots that a lane of this standing may still take."""
        free = self._total - self.busy
        if standing is not QUICK:
            slow = self._busy[SLOW]
            free = min(free, self._unproven_share - self._busy[NEW] - slow)
            if standing is SLOW:
                free = min(free, self._slow_share - slow)
        return free

    def _may_begin(self, lane: PushLane) -> bool:
        inflight = lane.inflight
        return inflight < lane.window and (inflight == 0 or inflight < self._free_for(lane.standing))
