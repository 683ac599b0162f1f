"""Endpoints with variables (HER-78): `http://host/{a.b}?t={c}`, each a path into the message. Pure.

A value is percent-encoded, so that it can add no part to the address. Where the address leads is judged at every attempt.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from tidings.errors import Malformed
from tidings.events import json_text

VARIABLE = re.compile(r"\{([^{}]+)\}")
_STEP = re.compile(r"([^.\[\]]+)|\[(\d{1,9})\]")


class EndpointTemplate:
    """An address with variables, taken apart once."""

    __slots__ = ("_parts", "_paths")

    def __init__(self, text: str) -> None:
        pieces = VARIABLE.split(text)
        self._parts = pieces[::2]
        self._paths = [(name, _steps(name)) for name in pieces[1::2]]

    def filled(self, body: bytes) -> tuple[str, str]:
        """The address for this message and ""; or "" and why there is none."""
        try:
            value = json_text.parse(body)
        except Malformed as error:
            return "", f"the endpoint has variables and the message is not JSON: {error}"
        texts = []
        for name, steps in self._paths:
            text = _text(_found(value, steps))
            if not text:
                return "", f"the message has nothing at {name}, a variable of the endpoint"
            texts.append(quote(text, safe=""))
        rest = (text + part for text, part in zip(texts, self._parts[1:], strict=True))
        return "".join((self._parts[0], *rest)), ""


def _steps(path: str) -> Sequence[str | int]:
    plain = path.strip().removeprefix("$").removeprefix(".")
    return [int(found[2]) if found[2] else found[1] for found in _STEP.finditer(plain)]


def _found(value: Any, steps: Sequence[str | int]) -> Any:
    for step in steps:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def _text(value: Any) -> str:
    """A value as it stands in an address; objects, lists and null do not."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
    return ""
