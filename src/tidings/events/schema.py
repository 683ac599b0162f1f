"""JSON Schema for payloads: compiled once per version, no network, work bounded for any payload and any schema.

Patterns run on a linear-time engine; what it cannot say (look-around, back references) is refused at creation.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

import jsonschema_rs

from tidings.errors import EventFault, Malformed
from tidings.events import json_text
from tidings.events.schema_cost import Unfolding, has_choices, unfolded

MOST_FAULTS = 20
"""Faults told about one payload at the most."""

_LONGEST_DETAIL = 200
_MOST_BRANCHES = 1_000
_MOST_CHECKS = 50_000
"""Values of a payload times subschemas: beyond it, only the first fault is told, since finding all of them may take minutes."""

_REGEX_BYTES = 1 << 20
_NO_EXPRESSION = ' is not a "regex"'
_LINEAR = "one that is not too large, without look-around and back references"


class Schema:
    """A compiled schema. Make it with `compiled`; safe to share between threads."""

    def __init__(self, validator: jsonschema_rs.Validator, unfolding: Unfolding, *, choices: bool) -> None:
        self._validator = validator
        self._unfolding = unfolding
        self._choices = choices

    @classmethod
    def compiled(cls, document: Mapping[str, Any] | bool) -> Schema:
        """The schema of a document; Malformed when it is no valid schema, refers to something outside it, or is too large."""
        plain = dict(document) if isinstance(document, Mapping) else document
        unfolding = unfolded(plain)
        patterns = jsonschema_rs.RegexOptions(size_limit=_REGEX_BYTES, dfa_size_limit=_REGEX_BYTES)
        try:
            validator = jsonschema_rs.validator_for(plain, pattern_options=patterns, offline=True)
        except jsonschema_rs.ValidationError as error:
            place = pointer(error.instance_path)
            if error.message.endswith(_NO_EXPRESSION):
                found = error.message.removesuffix(_NO_EXPRESSION)
                raise Malformed(f"{_cut(found)} cannot be used as a regular expression", at=place, expected=_LINEAR) from error
            raise Malformed(f"this is not a usable JSON Schema: {_cut(error.message)}", at=place) from error
        except (jsonschema_rs.ReferencingError, ValueError, TypeError) as error:
            raise Malformed(f"this is not a usable JSON Schema: {_cut(str(error))}") from error
        return cls(validator, unfolding, choices=has_choices(plain))

    def faults(self, data: bytes | None, index: int = 0) -> list[EventFault]:
        """What is wrong with a payload, each with the JSON pointer to its place; empty when it fits."""
        if data is None:
            return [EventFault(index, "data", "schema", "the topic's schema expects data and there is none")]
        try:
            value = json_text.parse(data)
        except Malformed as error:
            return [EventFault(index, "data", "schema", f"the topic's schema expects JSON: {error}")]
        return self.faults_in(value, index)

    def faults_in(self, value: Any, index: int = 0) -> list[EventFault]:
        """The same for a payload that was parsed already."""
        return [EventFault(index, "data", "schema", reason, place) for place, reason in self.places(value)]

    def places(self, value: Any) -> list[tuple[str | None, str]]:
        """What is wrong with a value: JSON pointers and reasons; no pointer where telling the place would take too long."""
        if self._validator.is_valid(value):
            return []
        # Telling what failed follows every branch, which doubles with each level where a schema refers to itself twice.
        if self._unfolding.loops ** json_text.depth_of(value) > _MOST_BRANCHES:
            return [(None, "the data does not match the schema")]
        if _count(value, _MOST_CHECKS) * max(self._unfolding.size, 1) > _MOST_CHECKS:
            return [self._first(value)]
        errors = islice(self._validator.iter_errors(value), MOST_FAULTS)
        return [(pointer(error.instance_path), _cut(error.message)) for error in errors]

    def _first(self, value: Any) -> tuple[str | None, str]:
        """The first fault of a value that does not fit."""
        try:
            if not self._choices:
                self._validator.validate(value)
        except jsonschema_rs.ValidationError as error:
            return pointer(error.instance_path), _cut(error.message)
        return None, "the data does not match the schema"


def pointer(path: list[str | int]) -> str:
    """A path as a JSON pointer (RFC 6901)."""
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)


def _count(value: Any, most: int) -> int:
    """How many values there are in this one, itself included; counts no further than `most`."""
    found, waiting = 0, [value]
    while waiting and found < most:
        one = waiting.pop()
        found += 1
        waiting += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
    return found


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_DETAIL else f"{text[: _LONGEST_DETAIL - 1]}…"
