"""How events are laid out for a subscriber, beyond CloudEvents: what a door's documents ask for. Plain values."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class PayloadForm(StrEnum):
    """Whether an event arrives with its payload, or with the address where its subscriber fetches it (HOR-145)."""

    DATA = "data"
    DATAREF = "dataref"


OWN_ENVIRONMENT = "default"
"""How the hub's own environment is kept, whatever the settings call it."""


class Horizon(msgspec.Struct, frozen=True, kw_only=True):
    """Laid out as Horizon does (HOR-108, HOR-109), and who is who: in headers, in the hub's token, in data references.

    `publisher` owns the event type. `zone` is the subscriber's own, or the hub's where it has none. `filtered`: anything is
    filtered, so that JSON which was published as a text arrives as JSON (HOR-68).
    """

    environment: str
    subscription: str
    publisher: str
    subscriber: str
    zone: str
    payload: PayloadForm = PayloadForm.DATA
    filtered: bool = False

    @property
    def request_path(self) -> str:
        """The path that the hub's token names (HOR-110)."""
        return f"/horizon-{self.zone.lower()}/callback/v1"
