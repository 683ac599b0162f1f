"""Reads the members of a Hermes document (HER-04, HER-05): a wrong JSON type ends the reading, broken rules are collected."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tidings.doors.hermes.refusals import ErrorCode, invalid, refused
from tidings.events.json_text import kind_of

LONGEST_TEXT = 4096
NEEDED = "must not be null"

Faults = list[tuple[str, str]]


class Fields:
    """The members of one object. `path` begins with the class as Hermes calls it; null is the same as absent."""

    def __init__(self, raw: Mapping[str, Any], path: str, faults: Faults) -> None:
        self.raw = raw
        self.path = path
        self.faults = faults

    def fault(self, name: str, text: str) -> None:
        """Note that a member breaks a rule."""
        self.faults.append((f"{self.path}.{name}" if name else self.path, text))

    def text(self, name: str, otherwise: str = "", *, needed: bool = False, longest: int = LONGEST_TEXT) -> str:
        """A text; `needed`: absent or empty is a fault."""
        value = self._of(name, str, "a text")
        if needed and not value:
            self.fault(name, NEEDED if value is None else "must not be empty")
        if value is not None and len(value) > longest:
            self.fault(name, f"must have at most {longest} characters")
        return otherwise if value is None else str(value)

    def flag(self, name: str, otherwise: bool = False) -> bool:
        value = self._of(name, bool, "true or false")
        return otherwise if value is None else bool(value)

    def word(self, name: str, words: Sequence[str], otherwise: str) -> str:
        """One of these words. Raises for another one: Hermes cannot read it."""
        value = self._of(name, str, "a text")
        if value is not None and value not in words:
            raise self._unreadable(name, f"one of {', '.join(words)}", value)
        return otherwise if value is None else str(value)

    def whole(self, name: str, low: int, high: int | None, otherwise: int) -> int:
        """A whole number within its range."""
        value = self._of(name, int, "a whole number")
        return otherwise if value is None else self._within(name, int(value), low, high)

    def number(self, name: str, low: float, high: float, otherwise: float) -> float:
        """A number within its range."""
        value = self._of(name, (int, float), "a number")
        if value is None:
            return otherwise
        if not math.isfinite(value):
            raise self._unreadable(name, "a finite number", value)
        return float(self._within(name, value, low, high))

    def below(self, name: str, *, needed: bool = False) -> Fields:
        """The members of an object inside; `needed`: absent is a fault."""
        value = self._of(name, dict, "an object")
        if needed and value is None:
            self.fault(name, NEEDED)
        return Fields(value or {}, f"{self.path}.{name}", self.faults)

    def objects(self, name: str) -> list[Fields]:
        """The objects of a list."""
        found = []
        for index, one in enumerate(self.items(name)):
            if not isinstance(one, dict):
                raise self._unreadable(f"{name}[{index}]", "an object", one)
            found.append(Fields(one, f"{self.path}.{name}[{index}]", self.faults))
        return found

    def items(self, name: str) -> list[Any]:
        """The members of a list."""
        return self._of(name, list, "a list") or []

    def texts(self, name: str) -> list[str]:
        """A list of texts."""
        for index, one in enumerate(self.items(name)):
            if not isinstance(one, str):
                raise self._unreadable(f"{name}[{index}]", "a text", one)
        return self.items(name)

    def _of(self, name: str, kind: type | tuple[type, ...], expected: str) -> Any:
        value = self.raw.get(name)
        if value is not None and (not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool)):
            raise self._unreadable(name, expected, value)
        return value

    def _within(self, name: str, value: Any, low: float, high: float | None) -> Any:
        if value < low:
            self.fault(name, f"must be greater than or equal to {low}")
        if high is not None and value > high:
            self.fault(name, f"must be less than or equal to {high}")
        return value

    def _unreadable(self, name: str, expected: str, found: object) -> Exception:
        told = found if isinstance(found, str) and len(found) <= 80 else kind_of(found)
        return refused(ErrorCode.FORMAT_ERROR, f"{self.path}.{name} cannot be read: expected {expected}, found {told}")


def fields_of(raw: object, path: str) -> Fields:
    """The members of a whole document. Raises for anything but an object."""
    if not isinstance(raw, dict):
        raise refused(ErrorCode.FORMAT_ERROR, f"{path} cannot be read: expected an object, found {kind_of(raw)}")
    return Fields(raw, path, [])


def refuse_faults(fields: Fields) -> None:
    """Raise VALIDATION_ERROR with everything that was noted."""
    if fields.faults:
        raise invalid(fields.faults)


def merged(standing: object, patch: object) -> Any:
    """The patch over what stands: objects merge level by level, everything else is replaced (HER-18)."""
    if not isinstance(patch, dict) or not isinstance(standing, dict):
        return patch
    return {**standing, **{name: merged(standing.get(name), value) for name, value in patch.items()}}
