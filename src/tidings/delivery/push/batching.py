"""Batches: when one is full, and how its events are laid out in one request. Pure."""

from __future__ import annotations

import json
from base64 import b64encode
from urllib.parse import unquote

import msgspec

from tidings.clock import SECOND, Instant
from tidings.delivery.push.lane import Item
from tidings.delivery.push.policy import BatchPolicy
from tidings.delivery.push.pushing import Parcel
from tidings.registry.wishes import BatchForm

SEPARATOR = 2
"""Bytes that each event needs beside its own."""

_TYPES = {
    BatchForm.CLOUDEVENTS: "application/cloudevents-batch+json; charset=utf-8",
    BatchForm.PLAIN: "application/json",
    BatchForm.WRAPPED: "application/json",
}


class Batch:
    """Events that go out together. `sealed`: it takes no more and is sent until it is final; `leaving`: until that is saved."""

    __slots__ = ("_begun", "_bytes", "_policy", "items", "leaving", "parcels", "sealed", "whole")

    def __init__(self, policy: BatchPolicy) -> None:
        self._policy = policy
        self._begun = 0.0
        self._bytes = 0
        self.items: list[Item] = []
        self.parcels: list[Parcel] = []
        self.whole: Parcel | None = None
        self.sealed = False
        self.leaving = False

    def fits(self, parcel: Parcel) -> bool:
        """Whether the event may be added. An event that is larger than a batch goes alone."""
        return not self.items or self._bytes + len(parcel.body) + SEPARATOR <= self._policy.bytes

    def add(self, item: Item, parcel: Parcel, at: float = 0.0) -> None:
        """One more event, at a monotonic second."""
        if not self.items:
            self._begun = at
        self.items.append(item)
        self.parcels.append(parcel)
        self._bytes += len(parcel.body) + SEPARATOR

    @property
    def full(self) -> bool:
        return len(self.items) >= self._policy.size or self._bytes >= self._policy.bytes

    def wait(self, now: Instant, at: float = 0.0) -> float:
        """Seconds until it goes out although it is not full; `now` by the clock, `at` in monotonic seconds."""
        # Begun before by either: an event may have waited long already, or the clock may have been set back.
        waited = max((now - self.items[0].since) / SECOND, at - self._begun)
        return max(0.0, self._policy.time - waited)

    def seal(self, headers: dict[str, str]) -> Parcel:
        """Take no more; the whole batch as one parcel, the same for every try."""
        self.sealed = True
        first = self.parcels[0]
        body = b"[%b]" % b",".join(element_of(self._policy.form, parcel) for parcel in self.parcels)
        named = {"content-type": _TYPES[self._policy.form], "tidings-batch-id": first.headers.get("tidings-delivery-id", "")}
        self.whole = Parcel(first.offset, {**headers, **named}, body, published=first.published)
        self.parcels = []
        return self.whole


def element_of(form: BatchForm, parcel: Parcel) -> bytes:
    """One event as an element of the list."""
    if form is BatchForm.CLOUDEVENTS:
        return parcel.body
    data = _json_of(parcel)
    if form is BatchForm.PLAIN:
        return data
    metadata = f'{{"timestamp":{parcel.published // 1000},"id":{json.dumps(_event_id(parcel))},"externalMetadata":{{}}}}'
    return b'{"_w":true,"metadata":%b,"message":%b}' % (metadata.encode(), data)


def _event_id(parcel: Parcel) -> str:
    """The id of the event. One without a payload is laid out as a whole, and names its id inside."""
    if "ce-id" in parcel.headers:
        return unquote(parcel.headers["ce-id"])
    return msgspec.json.decode(parcel.body, type=_Named).id


class _Named(msgspec.Struct):
    id: str = ""


def _json_of(parcel: Parcel) -> bytes:
    """The payload as JSON; what is none becomes a text, of base64 where it is no text either."""
    kind = parcel.headers.get("content-type", "application/json").partition(";")[0].strip()
    if kind.endswith("json"):
        return parcel.body
    try:
        return json.dumps(parcel.body.decode()).encode()
    except UnicodeDecodeError:
        return json.dumps(b64encode(parcel.body).decode()).encode()
