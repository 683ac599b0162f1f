"""How the events of a batch are laid out in one request. Which events those are, `choice` says. Pure."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from urllib.parse import unquote

import msgspec

from tidings.delivery.push.lane.entries import Parcel
from tidings.delivery.push.policy.policy import BatchPolicy, Policy
from tidings.delivery.push.request.formats import Laid
from tidings.registry.delivery_options import BatchForm

_TYPES = {
    BatchForm.CLOUDEVENTS: "application/cloudevents-batch+json; charset=utf-8",
    BatchForm.PLAIN: "application/json",
    BatchForm.WRAPPED: "application/json",
}


def batch_of(policy: Policy, batch: BatchPolicy, parcels: Sequence[Parcel]) -> Parcel:
    """A batch as one parcel, the same for every try."""
    first = parcels[0]
    laid = policy.format.batch(parcels) if policy.format.has_batch else _batch(batch.form, parcels)
    headers = {**policy.headers, **laid.headers, "tidings-batch-id": first.headers.get("tidings-delivery-id", "")}
    return Parcel(first.number, first.position, headers, laid.body, published=first.published)


def _batch(form: BatchForm, parcels: Sequence[Parcel]) -> Laid:
    return Laid({"content-type": _TYPES[form]}, b"[%b]" % b",".join(element_of(form, parcel) for parcel in parcels))


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
