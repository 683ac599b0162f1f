"""How events are laid out for a subscriber where that is not as CloudEvents have it: what a door asks for. Plain values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """A door's own layout of one subscription: the name of its format, and what that format has to know.

    `settings` is JSON that nobody but the door reads.
    """

    format: str
    settings: Mapping[str, Any] = {}

    def read(self, kind: type[T]) -> T:
        """The settings as the door's own value. Raises msgspec.ValidationError."""
        return msgspec.convert(self.settings, kind)


def layout_of(format: str, settings: msgspec.Struct) -> Layout:
    """The layout of a door's own value, as it reads when it was stored and read again."""
    return Layout(format=format, settings=msgspec.json.decode(msgspec.json.encode(settings)))
