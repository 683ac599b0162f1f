"""Additional headers of subscriptions may be secrets: documents keep their values sealed (HER-D12), and show them as they came."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tidings.access.secret_box import Box, Unreadable
from tidings.access.secrets import COVER


def with_sealed_headers(box: Box, document: Mapping[str, Any]) -> dict[str, Any]:
    """The document as it is kept."""
    return _with_values(document, box.seal)


def with_opened_headers(box: Box, document: Mapping[str, Any]) -> dict[str, Any]:
    """The document as it was written. A value that was sealed with another key is covered."""

    def opened(place: str, value: str) -> str:
        try:
            return box.open(place, value)
        except Unreadable:
            return COVER

    return _with_values(document, opened)


def _with_values(document: Mapping[str, Any], change: Callable[[str, str], str]) -> dict[str, Any]:
    place = f"hermes/{document['topicName']}/{document['name']}/headers"
    headers = [{**one, "value": change(f"{place}/{one['name'].lower()}", one["value"])} for one in document["headers"]]
    return {**document, "headers": headers}
