"""A batch of events as one JSON array (CEJ-06), read all or nothing.

A batch without anything unusual is parsed as a whole, which costs half of parsing event by event. What leaves a doubt is read
again event by event, so that every fault is told with the event it is in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from tidings.errors import Malformed
from tidings.events import json_text, structured
from tidings.events.limits import Limits, all_or_nothing
from tidings.events.model import Event

_MANY_MEMBERS = 64
"""A batch with more commas than this for each event it may hold is looked at twice, and never parsed as a whole."""

_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class _Shape(msgspec.Struct):
    """The least an event has. Millions of tiny elements fail on the first one, before memory is spent on them."""

    specversion: msgspec.Raw


_ELEMENT = re.compile(r"at `\$\[(\d+)\]")
_shapes = msgspec.json.Decoder(list[_Shape]).decode
_elements = msgspec.json.Decoder(list[msgspec.Raw]).decode
_payloads = msgspec.json.Decoder(list[structured.StructuredPayload]).decode


def read(body: bytes, transport: Mapping[str, str], limits: Limits) -> list[Event]:
    """The events of a batch. Raises Malformed, InvalidEvent or TooLarge."""
    limits.check_batch_bytes(len(body))
    crowded = body.count(b",") > _MANY_MEMBERS * limits.batch_events
    whole = None if crowded else _parsed(body, limits)
    if whole is not None:
        return all_or_nothing(whole, lambda event, index: structured.from_members(*event, transport, index))
    texts = _split(body, limits, crowded=crowded)
    return all_or_nothing(texts, lambda text, index: _read_one(text, transport, limits, index))


def _parsed(body: bytes, limits: Limits) -> list[tuple[dict[str, Any], bytes]] | None:
    """Members and payload text of every event; None when anything about the batch leaves a doubt."""
    try:
        payloads = [bytes(event.data) for event in _payloads(body)]
    except _UNREADABLE:
        return None
    limits.check_batch_events(len(payloads))
    values = json_text.at_once(body)
    if values is None or any(map(json_text.may_be_too_deep, payloads)) or not _fit(body, limits):
        return None
    return list(zip(values, payloads, strict=True))


def _fit(body: bytes, limits: Limits) -> bool:
    """Whether no event is too large."""
    most = limits.max_event_bytes
    return len(body) <= most or all(memoryview(text).nbytes <= most for text in _elements(body))


def _split(body: bytes, limits: Limits, *, crowded: bool) -> list[bytes]:
    try:
        if crowded:
            _shapes(body)
        elements = _elements(body)
    except RecursionError:
        raise Malformed("the JSON text nests too deeply") from None
    except msgspec.ValidationError as error:
        raise _no_batch(str(error)) from None
    except msgspec.DecodeError as error:
        raise json_text.unreadable(body, error) from None
    except UnicodeDecodeError:
        raise Malformed("the JSON text is not valid UTF-8") from None
    limits.check_batch_events(len(elements))
    return [bytes(element) for element in elements]


def _no_batch(told: str) -> Malformed:
    """What the reader of JSON says of a text that is not an array of objects."""
    found = _ELEMENT.search(told)
    if found is not None:
        return Malformed("an event is a JSON object", at=f"event {found[1]}")
    if "out of range" in told:
        return Malformed("the JSON text holds a number that is too large", expected="fewer digits, or a text")
    return Malformed("this is not a batch", expected="a JSON array of events")


def _read_one(text: bytes, transport: Mapping[str, str], limits: Limits, index: int) -> Event:
    limits.check_event(len(text), index)
    return structured.read(text, transport, index)
