"""How much one request may bring (CE-06, CEJ-06), and reading its events all or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import msgspec

from tidings.errors import EventFault, InvalidEvent, Malformed, TooLarge
from tidings.events.model import Event

T = TypeVar("T")

MOST_FAULTS = 100
"""How many faults are looked for in one request."""


class Limits(msgspec.Struct, frozen=True, gc=False):
    """The limits of one request, and the transport headers that are kept (CE-07; names in lower case)."""

    max_event_bytes: int = 65_536
    batch_events: int = 1_000
    batch_bytes: int = 4 << 20
    transport_headers: frozenset[bytes] = frozenset((b"traceparent", b"tracestate", b"baggage"))

    def keeping(self, names: Iterable[str]) -> Limits:
        """The same limits with these transport headers kept."""
        return msgspec.structs.replace(self, transport_headers=frozenset(name.lower().encode() for name in names))

    def check_event(self, size: int, index: int = 0) -> None:
        """TooLarge when an event has more bytes, as received, than it may."""
        if size > self.max_event_bytes:
            most = f"at most {self.max_event_bytes}"
            raise TooLarge(f"an event of {size} bytes is too large", at=f"event {index}", expected=most)

    def check_batch_bytes(self, size: int) -> None:
        """TooLarge when a batch has more bytes than it may."""
        if size > self.batch_bytes:
            raise TooLarge(f"a batch of {size} bytes is too large", expected=f"at most {self.batch_bytes}")

    def check_batch_events(self, count: int) -> None:
        """TooLarge when a batch has more events than it may."""
        if count > self.batch_events:
            raise TooLarge("a batch has too many events", expected=f"at most {self.batch_events}")


def all_or_nothing(given: Sequence[T], read: Callable[[T, int], Event]) -> list[Event]:
    """The event of every one; InvalidEvent with the faults of all bad ones when there is one."""
    events: list[Event] = []
    faults: list[EventFault] = []
    for index, one in enumerate(given):
        try:
            events.append(read(one, index))
        except InvalidEvent as error:
            faults.extend(error.faults)
        except Malformed as error:
            faults.append(EventFault(index, "", error.code, str(error)))
        if len(faults) >= MOST_FAULTS:
            break
    if faults:
        raise InvalidEvent(faults[:MOST_FAULTS])
    return events
