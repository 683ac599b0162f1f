"""Message ids as clients see them: which entry of a lane one stands for."""

from __future__ import annotations

import uuid
from functools import cache
from pathlib import Path

from tidings.access.secrets import hub_key
from tidings.facades.parts import Parts
from tidings.ids import DeliveryIds
from tidings.log.position import EMBEDDED, START, LaneNumber, Offset, Position


@cache
def _ids(data: Path) -> DeliveryIds:
    return DeliveryIds(hub_key(data).reveal())


def message_id(parts: Parts, lane: LaneNumber, position: Position) -> str:
    """The id of one entry of a lane: the same for ever."""
    return _ids(parts.settings.data).text_of(lane, position.partition, position.offset)


def position_of(parts: Parts, lane: LaneNumber, text: str) -> Position | None:
    """The place of the entry that a message id of this lane stands for, kept or not; None: it is no id of this lane."""
    try:
        name = _ids(parts.settings.data).name_of(uuid.UUID(text))
    except ValueError:
        return None
    known = name.lane == lane and name.partition == EMBEDDED and name.offset <= parts.lanes.routed().get(EMBEDDED, START)
    return Position(EMBEDDED, Offset(name.offset)) if known else None
