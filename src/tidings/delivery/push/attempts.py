"""Makes one attempt of a lane: where it goes, and what its format adds to it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from tidings.delivery.push.egress.sender import Sender, SendTarget
from tidings.delivery.push.lane.push_lane import Job, PushLane
from tidings.delivery.push.policy.decision import BAD_URL, Outcome
from tidings.delivery.push.policy.policy import Policy


class Attempts:
    """Makes attempts. One event loop."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender

    def made(self, job: Job) -> Awaitable[Outcome]:
        """What comes of an attempt. Not `async` itself: most attempts need no more than the sender's own coroutine."""
        lane, items, parcel, policy = job
        parcel.headers["tidings-attempt"] = str(items[0].tries + 1)
        if policy.format.has_attempt:
            return self._with_own_part(job)
        target = lane.target or _target_of(lane, policy)
        return _unsent(BAD_URL) if target is None else self._sender.send(target, parcel.headers, parcel.body)

    async def _with_own_part(self, job: Job) -> Outcome:
        lane, items, parcel, policy = job
        part = policy.format.attempt(parcel, items[0].tries)
        if part.cause:
            return await _unsent(part.cause)
        target = _target(part.url, policy) if part.url else lane.target or _target_of(lane, policy)
        if target is None:
            return await _unsent(BAD_URL)
        body = parcel.body if part.body is None else part.body
        return await self._sender.send(target, {**parcel.headers, **part.headers}, body)


def _target_of(lane: PushLane, policy: Policy) -> SendTarget | None:
    """Where an attempt goes; None: its address cannot be read."""
    target = _target(policy.url, policy)
    if policy is lane.policy:
        lane.target = target
    return target


def _target(url: str, policy: Policy) -> SendTarget | None:
    try:
        return SendTarget(url, *policy.patience, access=policy.access)
    except ValueError:
        return None


async def _unsent(cause: str) -> Outcome:
    await asyncio.sleep(0)
    return Outcome(cause=cause)
