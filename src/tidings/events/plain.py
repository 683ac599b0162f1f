"""Requests that are no CloudEvents: plain JSON, lines of JSON, or any bytes, made into events by the native door.

| content type | becomes |
|---|---|
| none, or a JSON type | one event whose data is the body, also when it is a list |
| application/x-ndjson | an event per line; a line that is an object with `specversion` is a CloudEvent itself |
| anything else | one event with the body as its bytes and that datacontenttype |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from io import BytesIO
from itertools import islice

import msgspec

from tidings.clock import Instant, rfc3339
from tidings.errors import Malformed
from tidings.events import content_types, json_text, structured
from tidings.events.attribute_rules import SPECVERSION, checked, problem_free
from tidings.events.headers import RawHeaders, SortedHeaders, sorted_out
from tidings.events.http_binding import decode_sorted
from tidings.events.limits import Limits, all_or_nothing
from tidings.events.model import Event

_LINES = frozenset(("application/x-ndjson", "application/ndjson", "application/jsonl"))


class Unnamed(msgspec.Struct, frozen=True, gc=False):
    """What a plain event is given, since it does not say it itself."""

    source: str
    type: str
    now: Instant
    new_id: Callable[[], str]


def plain(headers: RawHeaders, body: bytes, limits: Limits, unnamed: Unnamed) -> list[Event]:
    """The events of a plain request. Raises Malformed, InvalidEvent and TooLarge as `decode` does."""
    return _plain(sorted_out(headers, limits.transport_headers), body, limits, unnamed)


def published(headers: RawHeaders, body: bytes, limits: Limits, unnamed: Unnamed) -> list[Event]:
    """The events of a request that may be either: CloudEvents when it says so, plain otherwise."""
    told = sorted_out(headers, limits.transport_headers)
    if told.context or content_types.is_cloudevents(told.content_type):
        return decode_sorted(told, body, limits)
    return _plain(told, body, limits, unnamed)


def _plain(told: SortedHeaders, body: bytes, limits: Limits, unnamed: Unnamed) -> list[Event]:
    stamp = _Stamp(unnamed, told.transport)
    if content_types.essence_of(told.content_type) in _LINES:
        return _lines(body, limits, stamp)
    limits.check_event(len(body))
    content_type = told.content_type or content_types.JSON
    if content_types.is_json(content_type):
        _check_json(body, told.content_type)
    return [stamp.event(content_type, body, 0)]


class _Stamp:
    """Makes the plain events of one request; they share their time."""

    def __init__(self, unnamed: Unnamed, transport: Mapping[str, str]) -> None:
        self._unnamed = unnamed
        self._time = rfc3339(unnamed.now)
        self.transport = transport

    def event(self, content_type: str, data: bytes, index: int) -> Event:
        attributes = {
            "specversion": SPECVERSION,
            "id": self._unnamed.new_id(),
            "source": self._unnamed.source,
            "type": self._unnamed.type,
            "time": self._time,
            "datacontenttype": content_type,
        }
        if content_type == content_types.JSON and _are_fit(self._unnamed.source, self._unnamed.type):
            return Event(attributes, data, False, self.transport)
        return checked(attributes, data or None, transport=self.transport, index=index)


@lru_cache(maxsize=1_024)
def _are_fit(source: str, type: str) -> bool:
    """Whether these, the same for every event of a topic, obey the rules. The rest of a plain JSON event is made here."""
    return problem_free({"specversion": SPECVERSION, "id": "-", "source": source, "type": type})


def _check_json(body: bytes, content_type: str) -> None:
    try:
        json_text.parse(body)
    except Malformed as error:
        if content_type:
            raise
        raise Malformed(f"{error.what}; a body that is not JSON needs a Content-Type", at=error.at) from None


def _lines(body: bytes, limits: Limits, stamp: _Stamp) -> list[Event]:
    limits.check_batch_bytes(len(body))
    filled = (line for line in map(bytes.strip, BytesIO(body)) if line)
    lines = list(islice(filled, limits.batch_events + 1))
    limits.check_batch_events(len(lines))
    return all_or_nothing(lines, lambda line, index: _line(line, index, stamp, limits))


def _line(line: bytes, index: int, stamp: _Stamp, limits: Limits) -> Event:
    limits.check_event(len(line), index)
    value = json_text.parse(line, json_text.MAX_DEPTH + 1)
    if isinstance(value, dict) and "specversion" in value:
        return structured.from_members(value, structured.payload_of(line), stamp.transport, index)
    return stamp.event(content_types.JSON, line, index)
