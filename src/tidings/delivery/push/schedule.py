"""Whose turn it is: fair between lanes, bounded in all, and never starved by endpoints that do not answer.

* Lanes with work stand in a queue and send one entry a turn.
* A lane's window grows by one with every answer up to its limit, and halves when no answer came or one that says "too much".
* A lane may not hold more attempts than are free, so that the last slots are never taken by lanes that have many already.
* Lanes whose last attempt got no answer share at most half of all slots.
"""

from __future__ import annotations

from collections import deque

from tidings.delivery.push.pushing import PushLane

LEAST_WINDOW = 4


class Schedule:
    """Hands out turns. `busy` is how many attempts are on their way."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._slow_share = max(1, total // 2)
        self._turns: deque[PushLane] = deque()
        self._slow_turns: deque[PushLane] = deque()
        self._slow_first = False
        self._slow_busy = 0
        self.busy = 0
        self.held = False

    def offer(self, lane: PushLane) -> None:
        """The lane may have something to send. Offering twice is the same as once."""
        if lane.listener is not None:
            lane.listener.wake()
        if not lane.queued and lane.pushing and self._may_begin(lane):
            lane.queued = True
            (self._slow_turns if lane.slow else self._turns).append(lane)

    def turn(self) -> PushLane | None:
        """The lane that may begin one attempt now; it is no longer queued. None: nobody, or no slot is free."""
        while not self.held and self.busy < self._total:
            queue = self._queue()
            if queue is None:
                return None
            lane = queue.popleft()
            lane.queued = False
            # A lane over its allowance is offered again when one of its own attempts ends.
            if lane.pushing and self._may_begin(lane):
                return lane
        return None

    def begin(self, lane: PushLane) -> None:
        """The lane begins an attempt."""
        lane.inflight += 1
        self.busy += 1
        self._slow_busy += lane.slow

    def end(self, lane: PushLane, answered: bool, pressed: bool = False) -> None:
        """An attempt of the lane ended; whether an answer came, and whether it asked for less, decides how many come next."""
        self._slow_busy -= lane.slow
        lane.inflight -= 1
        self.busy -= 1
        limit = lane.policy.inflight if lane.policy is not None else 1
        if not answered or pressed:
            lane.window = min(limit, max(LEAST_WINDOW, lane.window / 2))
        elif lane.window < limit:
            lane.window += 1
        if lane.slow is answered:
            # The attempts still on their way change sides together with the lane.
            self._slow_busy += -lane.inflight if answered else lane.inflight
            lane.slow = not answered

    def _queue(self) -> deque[PushLane] | None:
        slow = self._slow_turns if self._slow_busy < self._slow_share else None
        if slow and (self._slow_first or not self._turns):
            self._slow_first = False
            return slow
        self._slow_first = True
        return self._turns or None

    def _may_begin(self, lane: PushLane) -> bool:
        inflight = lane.inflight
        return inflight < lane.window and (inflight == 0 or inflight < self._total - self.busy)
