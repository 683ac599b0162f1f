"""What the engine is given from around it."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from tidings.clock import Clock
from tidings.delivery.push.request.formats import Formats
from tidings.ids import DeliveryIds
from tidings.log.position import LaneNumber
from tidings.observe.part_status import PartStatus


class Around:
    """Time, chance, ids, the part status for its figures, the formats of doors, how long topics keep events, and which lanes are
    this worker's own.
    """

    def __init__(
        self,
        clock: Clock,
        board: PartStatus,
        ids: DeliveryIds,
        formats: Formats,
        chance: Callable[[], float] = random.random,
        retention: float = math.inf,
    ) -> None:
        self.formats = formats
        self.mine: Callable[[LaneNumber], bool] = lambda lane: True
        self.retention = retention
        self.clock = clock
        self.board = board
        self.ids = ids
        self.chance = chance
