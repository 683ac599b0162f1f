"""Callbacks as Horizon makes them: body and headers (HOR-108, HOR-109), the hub's token (HOR-110), references (HOR-145)."""

from __future__ import annotations

import msgspec

from tidings.config import Settings
from tidings.delivery.push.request.formats import Laid, LaneFormat
from tidings.doors.horizon.event_json import horizon_json, horizon_reference
from tidings.doors.horizon.layout import IDENTITY, HorizonLayout, PayloadForm
from tidings.doors.horizon.names import DEFAULT
from tidings.events.headers import encoded_value
from tidings.events.model import Event
from tidings.events.stored import event_from
from tidings.lanes.port import StoredEntry
from tidings.registry.credentials import GatewayToken
from tidings.registry.formats import Layout

_HEADERS = {"content-type": "application/json", "accept": "application/json", "accept-charset": "UTF-8"}

_HERE = "here"
_PLACE = b'"dataref":"here"'
"""Stands for the address of a payload until it is known whose it is. Quotes inside of values are escaped: no value holds it."""


class HorizonFormat(LaneFormat, frozen=True, kw_only=True):
    """The event with its payload. `parsed`: JSON that came as a text goes on as JSON (HOR-68)."""

    parsed: bool

    def shared(self, entry: StoredEntry) -> Laid:
        event = event_from(entry.head, entry.data)
        return Laid(_headers(event), horizon_json(event, parsed=self.parsed))


class HorizonReferenceFormat(LaneFormat, frozen=True, kw_only=True):
    """The event with the address of its payload. `address`: that address, but for the message id."""

    address: str

    def shared(self, entry: StoredEntry) -> Laid:
        event = event_from(entry.head, entry.data)
        return Laid(_headers(event), horizon_reference(event, _HERE))

    def own(self, laid: Laid, entry: StoredEntry, delivery: str) -> Laid:
        address = b'"dataref":%b' % msgspec.json.encode(self.address + delivery)
        return laid._replace(body=laid.body.replace(_PLACE, address, 1))


def lane_format(layout: Layout, settings: Settings) -> LaneFormat:
    """The format of one subscription. Environments share nothing (HOR-124)."""
    kept = layout.read(HorizonLayout)
    environment = settings.horizon.environment if kept.environment == DEFAULT else kept.environment
    token = GatewayToken(
        request_path=kept.request_path, publisher=kept.publisher, subscriber=kept.subscriber, environment=environment
    )
    if kept.payload is PayloadForm.DATAREF:
        return HorizonReferenceFormat(
            key="horizon-dataref",
            headers=kept.identity,
            credential=token,
            group=kept.environment,
            address=kept.data_address(settings.hub_url),
        )
    return HorizonFormat(
        key="horizon-parsed" if kept.filtered else "horizon",
        headers=kept.identity,
        credential=token,
        group=kept.environment,
        parsed=kept.filtered,
    )


def _headers(event: Event) -> dict[str, str]:
    """The publisher's headers first: they cannot say who the hub knows somebody to be."""
    kept = {name: value for name, value in event.transport.items() if name not in IDENTITY}
    named = {"x-event-id": encoded_value(event.id), "x-event-type": encoded_value(event.type)}
    return {**kept, **_HEADERS, **named}
