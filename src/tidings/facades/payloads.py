"""The payload of one entry of a lane as its subscriber may see it: what projections left, for as long as retention allows."""

from __future__ import annotations

from typing import NamedTuple

from tidings.delivery.push.store import LaneKey
from tidings.delivery.push.stripped import GONE, Stripped
from tidings.errors import Expired, NotFound
from tidings.events.media import JSON
from tidings.events.stored import event_from
from tidings.facades.parts import Parts
from tidings.log.position import Position
from tidings.registry.model import Subscription
from tidings.registry.rules.retentions import Retentions


class Payload(NamedTuple):
    """A payload and its type."""

    content_type: str
    data: bytes


def payload_at(parts: Parts, subscription: Subscription, position: Position) -> Payload:
    """The payload at this place of the subscription's lane. Blocks while it reads. Raises NotFound or Expired."""
    key, stripped = LaneKey(subscription.lane, position.partition), Stripped(parts.lanes)
    found = parts.reader.fetch([position])
    (wanted,) = stripped.entries(key, [position.offset])
    entry = found.get(position)
    if entry is None:
        raise _removed(parts, position)
    kept = Retentions(parts.snapshot, parts.settings.topics.retention).of(subscription)
    if kept.until(position, entry.at) <= parts.clock.now():
        raise Expired("its retention is over", found=f"published {position.offset}", expected="an event that is kept")
    datas = stripped.datas(key, [wanted], found)
    data = datas.get(wanted)
    if wanted.digest == GONE or data is None:
        raise NotFound("the subscription has no such payload")
    return Payload(event_from(entry.head, None).datacontenttype or JSON, data)


def _removed(parts: Parts, position: Position) -> Expired | NotFound:
    """Why the log has no such entry: it was there once, or it never was."""
    if position.offset <= parts.reader.ends().get(position.partition, 0):
        return Expired("its retention is over")
    return NotFound("there is no such event")
