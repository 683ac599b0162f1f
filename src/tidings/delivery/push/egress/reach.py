"""What may be reached by this process, put together from the settings: rules, look-ups, ways. Made once per process."""

from __future__ import annotations

from tidings.clock import Clock
from tidings.config import Settings
from tidings.delivery.push.egress.address_guard import Guard, rules_of, told
from tidings.delivery.push.egress.endpoints import Endpoints, authorities_in
from tidings.delivery.push.egress.name_lookup import SystemLookup


class Reach:
    """The way out. One event loop; `close` at the end."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        push = settings.push
        self.rules = rules_of(push, settings.server, settings.access)
        self.sentence = told(self.rules, push)
        self._lookup = SystemLookup(push.connect_timeout, clock)
        self.guard = Guard(self.rules, self._lookup)
        self.ways = Endpoints(self.guard, clock, push.connect_timeout, authorities_in(push.ca_file))

    async def close(self) -> None:
        await self.ways.close()
        self._lookup.close()
