"""The documents in the body of a request: YAML or JSON, one or several (HOR-175)."""

from __future__ import annotations

import math
from typing import Any

from tidings import yaml12
from tidings.errors import Malformed
from tidings.events import json_text


def documents_in(body: bytes, *, json: bool) -> list[Any]:
    """The documents of a body; empty ones are left out. Raises Malformed with the place."""
    return _json(body) if json else _yaml(body)


def _yaml(body: bytes) -> list[Any]:
    try:
        return yaml12.documents_in(body.decode())
    except UnicodeDecodeError as error:
        raise Malformed("the text is not valid UTF-8", at=f"byte {error.start}") from error


def _json(body: bytes) -> list[Any]:
    value = json_text.parse(body)
    documents = [one for one in (value if isinstance(value, list) else [value]) if one is not None]
    _check(documents)
    return documents


def _check(documents: list[Any]) -> None:
    """The bounds that YAML has, and no number that would be written again as something else."""
    left = yaml12.MOST_NODES
    waiting: list[Any] = [documents]
    while waiting:
        value = waiting.pop()
        children = list(value.values()) if isinstance(value, dict) else value
        left -= len(children)
        if left < 0:
            raise Malformed("the documents hold too much", expected=f"at most {yaml12.MOST_NODES} values in all")
        if any(isinstance(one, float) and not math.isfinite(one) for one in children):
            raise Malformed("a number is too large", expected="a number that a double can hold, or a text")
        waiting += [one for one in children if isinstance(one, (dict, list))]
