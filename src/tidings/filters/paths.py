"""Where a condition looks: an attribute of the event, its text, or a place in the JSON payload."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from tidings.errors import FilterSyntaxError

_NAME = re.compile(r"[a-z0-9]{1,128}")
_MAX_STEPS = 64
_MAX_INDEX = 10**9


@dataclass(frozen=True, slots=True)
class AttributePath:
    """A context attribute with its own type: text, integer or boolean."""

    name: str

    def __post_init__(self) -> None:
        _check_name(self.name)


@dataclass(frozen=True, slots=True)
class AttributeTextPath:
    """A context attribute in its canonical text form: the integer 5 is read as "5", the boolean true as "true"."""

    name: str

    def __post_init__(self) -> None:
        _check_name(self.name)


@dataclass(frozen=True, slots=True)
class AttributesPath:
    """Several context attributes at once, with their own types: a tuple of their values, None for one that is missing."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DataPath:
    """A place in the JSON payload: member names (text) and array indexes (numbers from 0), from the outside in."""

    steps: tuple[str | int, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.steps) <= _MAX_STEPS:
            raise FilterSyntaxError("a path has 1 to 64 steps", found=len(self.steps))
        for step in self.steps:
            if isinstance(step, int) and not 0 <= step < _MAX_INDEX:
                raise FilterSyntaxError("an array index counts from 0", found=step, expected="0 to 999999999")


@dataclass(frozen=True, slots=True)
class ItemPath:
    """The value that a quantifier is looking at."""


ITEM = ItemPath()

Path: TypeAlias = AttributePath | AttributeTextPath | AttributesPath | DataPath | ItemPath


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name) or name == "data":
        raise FilterSyntaxError(
            "this cannot be the name of an attribute", found=name, expected="1 to 128 lower-case letters and digits"
        )
