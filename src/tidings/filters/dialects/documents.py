"""What dialects written as JSON share: places as JSON pointers, and limits that no document may exceed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from tidings.errors import FilterSyntaxError

T = TypeVar("T")

MAX_DEPTH = 32
MAX_PARTS = 500
MAX_BYTES = 64 << 10


class Count:
    """Counts the parts of one document, so that no input costs more than the limits."""

    def __init__(self) -> None:
        self._parts = 0

    def part(self, at: str, depth: int) -> None:
        """One more part, at this depth. Raises FilterSyntaxError when that is too much."""
        self._parts += 1
        if depth > MAX_DEPTH:
            raise FilterSyntaxError("the filter is nested too deeply", at=at, expected=f"at most {MAX_DEPTH} levels")
        if self._parts > MAX_PARTS:
            raise FilterSyntaxError("the filter has too many parts", at=at, expected=f"at most {MAX_PARTS}")


def check_size(raw: object) -> None:
    """Refuse a document that is too large, or that is no JSON at all."""
    try:
        size = len(msgspec.json.encode(raw))
    except (TypeError, ValueError, RecursionError) as error:
        raise FilterSyntaxError(f"the filter is no JSON: {error}") from error
    if size > MAX_BYTES:
        raise FilterSyntaxError("the filter is too large", expected=f"at most {MAX_BYTES} bytes of JSON")


def member(name: object) -> str:
    """A member name as a step of a JSON pointer."""
    return str(name).replace("~", "~0").replace("/", "~1")


def placed(at: str, make: Callable[[], T]) -> T:
    """What `make` gives; a refusal gets this place, in front of a column, unless it has a pointer already."""
    try:
        return make()
    except FilterSyntaxError as error:
        place = error.at if error.at.startswith("/") else ", ".join(filter(None, (at, error.at)))
        raise FilterSyntaxError(error.what, at=place, found=error.found, expected=error.expected) from error
