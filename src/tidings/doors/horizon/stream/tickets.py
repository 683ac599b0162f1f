"""Tickets for streams: a browser's EventSource cannot send a token, so one is exchanged for a word in the address (HOR-179)."""

from __future__ import annotations

import secrets
from typing import NamedTuple

from tidings.clock import Clock
from tidings.errors import Overloaded, Unauthenticated
from tidings.registry.model import Name

LIFE = 60.0
MOST = 10_000


class Ticket(NamedTuple):
    """What a ticket is good for, and until when (monotonic seconds)."""

    subscription: Name
    until: float


class Tickets:
    """Each is good once, for a minute, for one subscription. One event loop; they end with the process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._given: dict[str, Ticket] = {}

    def give(self, subscription: Name) -> str:
        """A new ticket. Raises Overloaded."""
        now = self._clock.monotonic()
        if len(self._given) >= MOST:
            self._given = {word: ticket for word, ticket in self._given.items() if ticket.until > now}
        if len(self._given) >= MOST:
            raise Overloaded("too many tickets were given and not used")
        word = secrets.token_urlsafe(24)
        self._given[word] = Ticket(subscription, now + LIFE)
        return word

    def take(self, word: str, subscription: Name) -> None:
        """Use a ticket. Raises Unauthenticated: it was used, is too old, or is for something else."""
        ticket = self._given.pop(word, None)
        if ticket is None or ticket.until <= self._clock.monotonic() or ticket.subscription != subscription:
            raise Unauthenticated("this ticket is not good (any more)", expected=f"a new one, used once within {LIFE:g} s")
