"""A fault of a document, the one about numbers, and the refusal that tells all of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from tidings.errors import EventFault, InvalidDocument, plain_number
from tidings.registry.port import Document

_MAPS = ("headers", "labels", "answers", "scopes")
_SNAKE = re.compile("_([a-z])")

Fault: TypeAlias = tuple[str, str]
"""The path of a field, and what is wrong there."""


def between(path: str, value: float | None, bounds: tuple[float, float], unit: str) -> Iterator[Fault]:
    """A fault unless the value is left to the hub or within its bounds; NaN is within none."""
    low, high = bounds
    if value is not None and not low <= value <= high:
        yield path, f"{plain_number(value)} is out of bounds: {plain_number(low)} to {plain_number(high)} {unit}"


def written(path: str) -> str:
    """A path as documents write it: members in lower camelCase. What stands below a map of the writer's own names is theirs."""
    words = path.split(".")
    own = next((n for n, word in enumerate(words) if word in _MAPS), len(words))
    return ".".join([_SNAKE.sub(lambda found: found[1].upper(), word) if n < own else word for n, word in enumerate(words)])


def refuse(documents: Sequence[Document], faults_of: Callable[[Document], Iterable[Fault]]) -> None:
    """Raise InvalidDocument with every fault of every document, if there is any."""
    faults = [
        EventFault(index, written(path), "invalid", reason)
        for index, document in enumerate(documents)
        for path, reason in faults_of(document)
    ]
    if faults:
        raise InvalidDocument(faults)
