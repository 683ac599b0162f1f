"""The member `config` of a subscription (SUB-13).

| key | is | default |
|---|---|---|
| `topic` | the topic whose events are meant | every topic of the default namespace |
| `contentmode` | `structured`, `binary` or `batch` | `structured` |
| `batchsize` | events of one request at the most, 1 to 1000; only with `batch` | 100 |
| `ordering` | `parallel`, `key` (not with `batch`) or `strict` | `parallel` |
| `rate` | requests a minute at the most | no limit |
| `start` | where a new subscription begins: `now`, with the `first` event there is, or at a time | `now` |
| `tokenplacement` | `header` or `query` | `header` |
| `signing` | `v1`, `v1a` or `none` | `v1` |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidings.delivery.push.request.handshake import LARGEST_RATE
from tidings.doors.cloudevents.subscriptions.faults import Faults
from tidings.doors.deliveries.start_points import instant_of
from tidings.errors import Malformed, shortened
from tidings.registry.credentials import Placement, SigningVersion
from tidings.registry.delivery_options import Ordering
from tidings.registry.model import DEFAULT_NAMESPACE, Name, NamespaceSource, Source, TopicsSource
from tidings.registry.rules import parse_name

STRUCTURED, BINARY, BATCH = "structured", "binary", "batch"
NOW, FIRST = "now", "first"
LARGEST_BATCH = 1000
USUAL_BATCH = 100

_WORDS: Mapping[str, tuple[str, ...]] = {
    "contentmode": (STRUCTURED, BINARY, BATCH),
    "ordering": tuple(Ordering),
    "tokenplacement": tuple(Placement),
    "signing": (*SigningVersion, "none"),
}
_NUMBERS = {"batchsize": LARGEST_BATCH, "rate": LARGEST_RATE}
_KEYS = ("topic", "contentmode", "batchsize", "ordering", "rate", "start", "tokenplacement", "signing")


@dataclass(frozen=True, slots=True)
class Configuration:
    """What `config` says. `start`: `now`, `first`, or the text of a time."""

    topic: Name | None = None
    contentmode: str = STRUCTURED
    batchsize: int | None = None
    ordering: str = Ordering.PARALLEL
    rate: int | None = None
    start: str = NOW
    tokenplacement: str = Placement.HEADER
    signing: str = SigningVersion.V1

    @property
    def source(self) -> Source:
        """The topics whose events are meant."""
        return NamespaceSource(DEFAULT_NAMESPACE) if self.topic is None else TopicsSource((self.topic,))


def configuration_in(raw: object, faults: Faults) -> Configuration:
    """What the member says; faults are collected. Null and absent keys are as the default."""
    members = {} if raw is None else faults.object(raw, "/config")
    found: dict[str, Any] = {}
    for key, value in members.items():
        pointer = f"/config/{key[:80].replace('~', '~0').replace('/', '~1')}"
        if key not in _KEYS:
            faults.add(pointer, f"there is no such key; expected {', '.join(_KEYS)}", "unknown")
        elif value is not None:
            found[key] = _value(key, value, pointer, faults)
    configuration = Configuration(**{key: value for key, value in found.items() if value is not None})
    if configuration.batchsize is not None and configuration.contentmode != BATCH:
        faults.add("/config/batchsize", "a batch size needs contentmode batch")
    if configuration.contentmode == BATCH and configuration.ordering == Ordering.KEY:
        faults.add("/config/ordering", "a batch holds events of many keys; expected parallel or strict")
    return configuration


def _value(key: str, value: object, pointer: str, faults: Faults) -> object:
    if key in _WORDS:
        if value not in _WORDS[key]:
            faults.add(pointer, f"expected {', '.join(_WORDS[key])}, found {shortened(value)}")
            return None
        return value
    if key in _NUMBERS:
        return _number(value, _NUMBERS[key], pointer, faults)
    text = faults.text(value, pointer)
    if text is None or text in (NOW, FIRST):
        return text
    try:
        if key == "topic":
            return parse_name(text)
        instant_of(text)
    except Malformed as error:
        faults.add(pointer, f"expected now, first, or a time: {error}" if key == "start" else str(error))
        return None
    return text


def _number(value: object, most: int, pointer: str, faults: Faults) -> int | None:
    """A whole number, or its digits: the standard's schema wants texts here."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 10:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        faults.add(pointer, f"expected a whole number from 1 to {most}, found {shortened(value)}")
        return None
    return value
