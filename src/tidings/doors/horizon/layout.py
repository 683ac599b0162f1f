"""What the hub keeps of a subscription's layout in Horizon's way. Plain values."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tidings.registry.formats import Layout, layout_of

FORMAT = "horizon"


class PayloadForm(StrEnum):
    """Whether an event arrives with its payload, or with the address where its subscriber fetches it (HOR-145)."""

    DATA = "data"
    DATAREF = "dataref"


class HorizonLayout(msgspec.Struct, frozen=True, kw_only=True):
    """Who is who (HOR-108, HOR-109): in headers, in the hub's token, in data references.

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

    @property
    def identity(self) -> dict[str, str]:
        """The headers that say who publishes and who subscribes (HOR-109)."""
        return dict(zip(IDENTITY, (self.publisher, self.subscriber, self.subscription), strict=True))

    def data_address(self, hub: str) -> str:
        """Where the subscriber fetches payloads, but for the message id at its end (HOR-145)."""
        return f"{hub}/horizon/v1/{self.environment}/data/{self.subscription}/"

    def kept(self) -> Layout:
        """As the registry keeps it."""
        return layout_of(FORMAT, self)


IDENTITY = ("x-pubsub-publisher-id", "x-pubsub-subscriber-id", "x-subscription-id")
