"""Deliveries as VNG asks for them: a copy of the event as one JSON object, with its subscription (VNG-08, VNG-09, VNG-90)."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tidings.config import Settings
from tidings.delivery.push.request.formats import Laid, LaneFormat
from tidings.doors.vng.layout import VngLayout
from tidings.doors.vng.publish.event_rules import REFERENCE, REFERENCE_KEY
from tidings.doors.vng.publish.stored_event import SPELLED
from tidings.events.http_binding import encode_structured
from tidings.events.model import Event
from tidings.events.stored import event_from
from tidings.lanes.port import StoredEntry
from tidings.registry.formats import Layout

_OWN = ("subscription", REFERENCE_KEY)
"""What an incoming event says of a subscription is never passed on: it was that of the service before (VNG-58)."""

_spelled = msgspec.json.Decoder(dict[str, str]).decode


class VngFormat(LaneFormat, frozen=True, kw_only=True):
    """The event, with what is its subscription's own at the front. `beginning` is that, as JSON without its closing brace."""

    beginning: bytes
    spelled: bool

    def shared(self, entry: StoredEntry) -> Laid:
        event = event_from(entry.head, entry.data)
        headers, body = encode_structured(_copy(event, spelled=self.spelled))
        return Laid(dict(headers), body)

    def own(self, laid: Laid, entry: StoredEntry, delivery: str) -> Laid:
        return laid._replace(body=b"%b,%b" % (self.beginning, laid.body[1:]))


def lane_format(layout: Layout, settings: Settings) -> LaneFormat:
    """The format of one subscription."""
    kept = layout.read(VngLayout)
    own = {"subscription": kept.subscription}
    if kept.reference:
        own[REFERENCE_KEY if kept.cloudevents_names else REFERENCE] = kept.reference
    spelled = not kept.cloudevents_names
    key = "vng" if spelled else "vng-cloudevents"
    return VngFormat(key=key, beginning=msgspec.json.encode(own)[:-1], spelled=spelled)


def _copy(event: Event, *, spelled: bool) -> Event:
    """The event without what is a subscription's own, names as their sender spelled them where that is asked for."""
    note = event.notes.get(SPELLED) if spelled else None
    names: Mapping[str, str] = {} if note is None else _spelled(note)
    attributes = {names.get(name, name): value for name, value in event.attributes.items() if name not in _OWN}
    return msgspec.structs.replace(event, attributes=attributes)
