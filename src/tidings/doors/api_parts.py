"""What every door works with: the parts of the api process, put together once in `tidings.app`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidings.access.authentication import Authenticator
from tidings.access.gateway_tokens import GatewayKey
from tidings.access.secret_box import Box
from tidings.access.settings_checks import OPEN
from tidings.clock import Clock
from tidings.config import Settings
from tidings.delivery.feeds.cursor_sets import CursorOverview, CursorSets
from tidings.delivery.push.reader import DeadLetters, DeliveryReader
from tidings.delivery.push.records.port import RecordsReader
from tidings.doors.door import Door
from tidings.doors.growth import Growth
from tidings.ids import DeliveryIds
from tidings.ingest.intake import Intake
from tidings.lanes.port import LaneIndex, Lanes
from tidings.log.commands import CommandGiver
from tidings.log.port import EventLog, LogWriter, TopicSlices
from tidings.observe.part_status import PartStatus
from tidings.registry.current import CurrentRegistry
from tidings.registry.model import Snapshot
from tidings.registry.port import Changes, RegistryReader
from tidings.server.asgi import BodyBudget

if TYPE_CHECKING:
    from tidings.delivery.push.egress.reach import Reach


if TYPE_CHECKING:
    # The filters behind it need numpy, which nobody who only publishes should wait for.
    from tidings.filters import RegexRules


@dataclass(frozen=True, slots=True)
class ApiParts:
    """The parts. `slices` and `delivery` are safe in any thread.

    `waiting` tells when the log has grown, `lane_waiting` when lanes have. `life` is that of the log: see `log/sqlite/life.py`.
    """

    settings: Settings
    clock: Clock
    gate: Authenticator
    log: LogWriter
    life: str
    slices: TopicSlices
    events: EventLog
    lanes: Lanes
    lane_index: LaneIndex
    delivery: DeliveryReader
    dead_letters: DeadLetters
    records: RecordsReader
    ids: DeliveryIds
    registry: RegistryReader
    changes: Changes
    commands: CommandGiver
    cursor_sets: CursorSets
    cursor_list: CursorOverview
    current: CurrentRegistry
    intake: Intake
    body_budget: BodyBudget
    doors: Sequence[Door]
    waiting: Growth
    lane_waiting: Growth
    board: PartStatus
    box: Box
    gateway_key: GatewayKey
    reach: Callable[[], Reach]

    @property
    def regex(self) -> RegexRules:
        """Which regular expressions filters may use."""
        from tidings.registry.route_steps import rules_of

        return rules_of(self.settings.regex)

    @property
    def trusting(self) -> bool:
        """Whether access is open, so that pages from elsewhere must be kept out."""
        return self.settings.access.mode == OPEN

    @property
    def snapshot(self) -> Snapshot:
        """Everything in force now."""
        return self.current.snapshot
