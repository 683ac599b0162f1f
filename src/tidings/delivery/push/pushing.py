"""One lane while it is being pushed: its state, and what of it is in memory and about to be sent."""

from __future__ import annotations

from array import array
from collections import deque
from copy import copy
from typing import NamedTuple

import msgspec

from tidings.clock import Instant
from tidings.delivery.push.decide import RetryPolicy
from tidings.delivery.push.lane import Item, LaneState, encode
from tidings.delivery.push.policy import Policy
from tidings.delivery.push.sender import Target
from tidings.delivery.push.store import Firsts, LaneKey, SavedLane, Tally
from tidings.log.position import Offset


class Parcel(msgspec.Struct, gc=False):
    """An entry ready to be sent. `fault`: it cannot be sent, and why (retention removed it, it cannot be read)."""

    offset: Offset
    headers: dict[str, str]
    body: bytes
    fault: str = ""


EXPIRED = "expired"
FIRST_WINDOW = 16.0


class Job(NamedTuple):
    """One attempt to be made."""

    lane: PushLane
    item: Item
    parcel: Parcel


class PushLane:
    """A lane with an owner. Only the engine's event loop touches it.

    `ready` holds live entries that were read but not taken; `ahead` are offsets that follow them, not read yet, with the digests
    of their bodies where any is projected. All are forgotten when the cursor moves. `due` are open items whose time has come,
    `loaded` those of them that were read. `pushing` says whether new attempts may begin; `window` is how many may be on their
    way at once, for now.
    """

    __slots__ = (
        *("ahead", "ahead_digests", "counted", "deleted", "due", "firsts", "inflight", "key", "loaded", "more", "name"),
        *("policy", "queued", "pushing", "read", "ready", "reported", "retry", "slow", "state", "tally", "target", "window"),
    )

    def __init__(self, key: LaneKey, name: str, state: LaneState, tally: Tally) -> None:
        self.key = key
        self.name = name
        self.state = state
        self.tally = tally
        self.policy: Policy | None = None
        self.retry = RetryPolicy(tries=1, first=1.0, longest=1.0)
        self.target: Target | None = None
        self.deleted = False
        self.pushing = False
        self.firsts = Firsts()
        self.due: deque[Item] = deque()
        self.loaded: deque[tuple[Item, Parcel]] = deque()
        self.ready: deque[Parcel] = deque()
        self.ahead = array("q")
        self.ahead_digests: bytes | None = None
        self.read = int(state.cursor)
        self.more = True
        self.inflight = 0
        self.window = 0.0
        self.slow = False
        self.queued = False
        self.counted = 0
        self.reported = tally.delivered

    def adopt(self, policy: Policy | None) -> bool:
        """Deliver by this policy from the next attempt on; None: begin nothing. False: it is the policy of before."""
        if policy == self.policy:
            return False
        self.policy = policy
        self.target = None
        if policy is not None:
            # Kept when pushing ends: what is on its way then still has an outcome to judge.
            self.retry = policy.retry
            self.window = min(FIRST_WINDOW, policy.inflight)
        self.forget_read()
        self._judge()
        return True

    def suspend(self, suspended: bool) -> None:
        """Begin no attempts, or begin them again."""
        self.state.suspended = suspended
        self._judge()

    def delete(self) -> None:
        """Begin no attempts ever again; what is on its way finishes."""
        self.deleted = True
        self._judge()
        self.forget_read()
        self.due.clear()

    def forget_read(self) -> None:
        """Drop what was read ahead of the cursor; it is read again, under the policy and cursor of then."""
        self.ready.clear()
        self.due.extend(item for item, _ in self.loaded)
        self.loaded.clear()
        self.ahead = array("q")
        self.ahead_digests = None
        self.read = int(self.state.cursor)
        self.more = True

    def saved(self) -> SavedLane:
        """The lane as it is saved."""
        state = self.state
        return SavedLane(
            key=self.key,
            state="deleted" if self.deleted else "suspended" if state.suspended else "active",
            body=encode(state),
            low_water=state.low_water,
            open_items=state.size,
            next_due=self._next_due(),
            tally=copy(self.tally),
        )

    def _judge(self) -> None:
        self.pushing = self.policy is not None and not self.deleted and not self.state.suspended

    def _next_due(self) -> Instant | None:
        return min((item.due for item in self.state.items() if item.tries and not item.sending), default=None)
