"""Messages as Hermes sends them: headers and body (HER-74 to HER-78), batches (HER-154, HER-155)."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import lru_cache

import msgspec

from tidings.config import Settings
from tidings.delivery.push.lane.entries import Parcel
from tidings.delivery.push.request.formats import AttemptPart, Laid, LaneFormat
from tidings.doors.hermes.endpoint_template import EndpointTemplate
from tidings.doors.hermes.layout import SUBSCRIPTION_NAME, TOPIC_NAME, HermesLayout
from tidings.errors import Malformed
from tidings.events.avro.names import fingerprint
from tidings.events.avro.payloads import AVRO_BINARY, SchemaBook
from tidings.events.headers import encoded_value
from tidings.events.model import Event
from tidings.events.stored import event_from
from tidings.lanes.port import StoredEntry
from tidings.registry.formats import Layout

MESSAGE_ID, RETRY_COUNT, BATCH_ID = "hermes-message-id", "hermes-retry-count", "hermes-batch-id"
TOO_LARGE = "too large"
_JSON = {"content-type": "application/json"}
_OURS = frozenset((MESSAGE_ID, RETRY_COUNT, BATCH_ID, TOPIC_NAME, SUBSCRIPTION_NAME, "schema-version", "keep-alive"))
"""Headers that a publisher cannot set for subscribers."""

_template = lru_cache(maxsize=1024)(EndpointTemplate)


class Schemas(msgspec.Struct, frozen=True):
    """The Avro schemas of a topic, each with its number. A value: formats with equal ones are equal."""

    numbered: tuple[tuple[int, str], ...] = ()

    def number_of(self, written_by: str) -> int | None:
        """The number of the schema with this fingerprint."""
        return next((number for number, text in self.numbered if fingerprint(text) == written_by), None)


@lru_cache(maxsize=1024)
def _book(schemas: Schemas) -> SchemaBook:
    return SchemaBook(text for _, text in schemas.numbered)


class HermesFormat(LaneFormat, frozen=True, kw_only=True):
    """One message in a request. `template`: the endpoint where it has variables. `avro`: Avro goes out as it was published."""

    schemas: Schemas = Schemas()
    avro: bool = False
    template: str = ""

    def shared(self, entry: StoredEntry) -> Laid:
        event = event_from(entry.head, entry.data)
        kept = {name: value for name, value in event.transport.items() if name not in _OURS}
        named = {**kept, **_JSON, MESSAGE_ID: encoded_value(event.id)}
        if not event.avro:
            return Laid(named, event.data or b"")
        if self.avro:
            number = self.schemas.number_of(event.avro)
            told = {"content-type": AVRO_BINARY, **({} if number is None else {"schema-version": str(number)})}
            return Laid({**named, **told}, event.data or b"")
        return Laid(named, self._json(event))

    def _json(self, event: Event) -> bytes:
        """The payload as JSON, without `__metadata` (HER-76). Raises Malformed."""
        schema = _book(self.schemas).of(event)
        if schema is None:
            raise Malformed("the schema that the message was written by is not known any more")
        return schema.json(event.data or b"")

    def attempt(self, parcel: Parcel, tries: int) -> AttemptPart:
        counted = {RETRY_COUNT: str(tries)}
        if not self.template:
            return AttemptPart(counted)
        url, cause = _template(self.template).filled(self._addressing(parcel))
        return AttemptPart(counted, url=url, cause=cause)

    def _addressing(self, parcel: Parcel) -> bytes:
        """The message as the variables of the endpoint see it."""
        if parcel.headers.get("content-type") != AVRO_BINARY or parcel.stored is None:
            return parcel.body
        return self._json(event_from(parcel.stored.head, parcel.stored.data))


class HermesBatchFormat(HermesFormat, frozen=True, kw_only=True):
    """Several messages in a request of at most so many bytes, each wrapped with what is known of it, or plain."""

    bytes: int
    wrapped: bool = True

    def own(self, laid: Laid, entry: StoredEntry, delivery: str) -> Laid:
        """A message that no batch can hold is discarded (HER-153)."""
        return laid._replace(fault=TOO_LARGE) if len(laid.body) + 2 > self.bytes else laid

    def batch(self, parcels: Sequence[Parcel]) -> Laid:
        element = _wrapped if self.wrapped else _payload
        body = b"[%b]" % b",".join(map(element, parcels))
        return Laid({**_JSON, BATCH_ID: parcels[0].headers["tidings-delivery-id"]}, body)


def _wrapped(parcel: Parcel) -> bytes:
    external = {name: value for name, value in _transport(parcel).items() if name not in _OURS}
    metadata = {
        "timestamp": parcel.published // 1000,
        "id": parcel.headers[MESSAGE_ID],
        "externalMetadata": external,
    }
    return b'{"_w":true,"metadata":%b,"message":%b}' % (msgspec.json.encode(metadata), _payload(parcel))


def _transport(parcel: Parcel) -> Mapping[str, str]:
    return event_from(parcel.stored.head, None).transport if parcel.stored is not None else {}


def _payload(parcel: Parcel) -> bytes:
    """The message as JSON; what is none becomes a text, of base64 where it is no text either."""
    if parcel.stored is None or not event_from(parcel.stored.head, None).base64:
        return parcel.body
    try:
        return json.dumps(parcel.body.decode()).encode()
    except UnicodeDecodeError:
        return json.dumps(b64encode(parcel.body).decode()).encode()


def lane_format(layout: Layout, settings: Settings) -> LaneFormat:
    """The format of one subscription."""
    kept = layout.read(HermesLayout)
    schemas = Schemas(kept.schemas)
    # What lanes share depends on nothing but the kind of payload.
    key = ("hermes", kept.avro, schemas) if kept.schemas else "hermes"
    if kept.batch_bytes:
        return HermesBatchFormat(key=key, headers=kept.headers, schemas=schemas, bytes=kept.batch_bytes, wrapped=kept.wrapped)
    return HermesFormat(key=key, headers=kept.headers, schemas=schemas, avro=kept.avro, template=kept.template)
