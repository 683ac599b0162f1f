"""Commands to delivery: appended to the log, applied by the lane's one owner, waited for a moment."""

from __future__ import annotations

import asyncio

from tidings.doors.api_parts import ApiParts
from tidings.errors import Conflict
from tidings.ids import random_id
from tidings.log.commands import Act, Command
from tidings.log.position import LaneNumber

PATIENCE = 2.0
PAUSE = 0.02


async def command(parts: ApiParts, lane: LaneNumber, by: str, act: Act) -> bool:
    """Whether the command was applied already; False: it is durable and will be. Raises Conflict when it cannot be applied."""
    order = Command(random_id(), lane, by, act)
    await parts.commands.give(order, parts.clock.now())
    deadline = parts.clock.monotonic() + PATIENCE
    while (result := await asyncio.to_thread(parts.delivery.result, order.id)) is None:
        if parts.clock.monotonic() > deadline:
            return False
        await asyncio.sleep(PAUSE)
    if result:
        raise Conflict(result)
    return True
