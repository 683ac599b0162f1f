"""Collects everything wrong with a document, each fault with its JSON pointer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tidings.errors import EventFault, InvalidDocument, shortened
from tidings.events.json_text import kind_of

_MEMBERS = {
    "delivery.url": "/sink",
    "delivery.headers": "/protocolsettings/headers",
    "delivery.credential.token": "/sinkcredential/accesstoken",
    "delivery.credential.token_type": "/sinkcredential/accesstokentype",
    "delivery.credential.refresh": "/sinkcredential/refreshtoken",
    "delivery.credential.refresh_at": "/sinkcredential/refreshtokenendpoint",
    "delivery.signing": "/config/signing",
    "source.topics": "/config/topic",
    "source.namespace": "/config/topic",
    "filter": "/filters",
}
"""Where the core's own words for the parts of a subscription stand in this door's documents."""


@contextmanager
def our_places() -> Iterator[None]:
    """Faults that the core finds are told with the places of this door's documents."""
    try:
        yield
    except InvalidDocument as error:
        raise InvalidDocument([replace(fault, attribute=_pointer(fault.attribute)) for fault in error.faults]) from error


def _pointer(path: str) -> str:
    for place, pointer in _MEMBERS.items():
        if path == place:
            return pointer
        if path.startswith(f"{place}.") and pointer.endswith("headers"):
            return f"{pointer}/{path[len(place) + 1 :].replace('~', '~0').replace('/', '~1')}"
    return next((pointer for place, pointer in _MEMBERS.items() if path.startswith(f"{place}[")), path)


class Faults:
    """The faults of one document."""

    def __init__(self) -> None:
        self._found: list[EventFault] = []

    def add(self, pointer: str, detail: str, code: str = "invalid") -> None:
        """At this place, this is wrong."""
        self._found.append(EventFault(0, pointer, code, detail))

    def text(self, value: Any, pointer: str) -> str | None:
        """The value if it is a text with something in it."""
        if isinstance(value, str) and value:
            return value
        self.add(pointer, f"expected a text of at least one character, found {shortened(value)}")
        return None

    def object(self, value: Any, pointer: str) -> Mapping[str, Any]:
        """The value if it is an object; else an empty one."""
        if isinstance(value, dict):
            return value
        self.add(pointer, f"expected an object, found {kind_of(value)}")
        return {}

    def check(self) -> None:
        """Raise InvalidDocument where anything was wrong."""
        if self._found:
            raise InvalidDocument(self._found)
