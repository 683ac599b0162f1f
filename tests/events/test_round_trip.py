"""Encoding an event and decoding it again is the identity, in every form."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.events.requests import raw
from tests.events.strategies import events
from tidings.events.http_binding import Limits, decode, encode_batch, encode_binary, encode_structured
from tidings.events.model import Event, text_of
from tidings.events.stored import event_from, head_of

LIMITS = Limits(max_event_bytes=1 << 20)


@given(events())
def test_the_structured_form_gives_back_the_event(event: Event) -> None:
    headers, body = encode_structured(event)
    (back,) = decode(raw(headers), body, LIMITS)
    assert back == event
    assert list(back.attributes) == list(event.attributes)


@given(st.lists(events(), max_size=4))
def test_the_batch_form_gives_back_the_events_without_transport_headers(given_events: list[Event]) -> None:
    headers, body = encode_batch(given_events)
    assert decode(raw(headers), body, LIMITS) == [msgspec.structs.replace(event, transport={}) for event in given_events]


@given(events())
def test_the_binary_form_gives_back_the_event_with_values_as_text(event: Event) -> None:
    headers, body = encode_binary(event)
    (back,) = decode(raw(headers), body, LIMITS)
    assert back == as_binary(event)


def as_binary(event: Event) -> Event:
    """What the binary form can say of an event: values are text, an empty body is no data, an implied type is spelled out."""
    attributes = {name: text_of(value) for name, value in event.attributes.items()}
    if event.data is not None and not event.base64:
        attributes.setdefault("datacontenttype", "application/json")
    typeless = "datacontenttype" not in attributes and bool(event.data)
    return Event(attributes, event.data or None, typeless, event.transport)


@given(events())
def test_the_stored_form_gives_back_the_event(event: Event) -> None:
    back = event_from(head_of(event), event.data)
    assert back == event
    assert list(back.attributes) == list(event.attributes)
