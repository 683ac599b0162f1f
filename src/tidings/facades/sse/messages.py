"""Message ids as clients see them: which entry of a lane one stands for."""

from __future__ import annotations

import uuid

from tidings.facades.parts import Parts
from tidings.log.position import EMBEDDED, START, LaneNumber, Offset, Position


def position_of(parts: Parts, lane: LaneNumber, text: str) -> Position | None:
    """The place of the entry that a message id of this lane stands for, kept or not; None: it is no id of this lane."""
    try:
        name = parts.ids.name_of(uuid.UUID(text))
    except ValueError:
        return None
    known = name.lane == lane and name.partition == EMBEDDED and name.offset <= parts.lanes.routed().get(EMBEDDED, START)
    return Position(EMBEDDED, Offset(name.offset)) if known else None
