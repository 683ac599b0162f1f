"""Lists, a page at a time (VNG-32, VNG-33)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import urlencode

from tidings.doors.vng.refusals import param
from tidings.doors.vng.resources.request import VngAnswer
from tidings.errors import InvalidDocument

PAGE = 100
LARGEST_PAGE = 2**31 - 1

T = TypeVar("T")


def page_of(query: Mapping[str, str]) -> int:
    """The page that is asked for, from 1. Raises InvalidDocument."""
    text = query.get("page", "1")
    if not (text.isascii() and text.isdigit() and len(text) <= 10 and 1 <= int(text) <= LARGEST_PAGE):
        raise InvalidDocument([param("page", "invalid", f"expected a whole number from 1, found {text[:50]!r}")])
    return int(text)


def cut(found: Sequence[T], page: int) -> Sequence[T]:
    """What is on this page."""
    return found[(page - 1) * PAGE : page * PAGE]


def page_answer(count: int, page: int, results: Sequence[Any], address: str, query: Mapping[str, str]) -> VngAnswer:
    """The page with links to its neighbors; a link is left out where there is none."""
    members: dict[str, Any] = {"count": count}
    last = max(1, -(-count // PAGE))
    if page < last:
        members["next"] = _link(address, query, page + 1)
    if page > 1:
        members["previous"] = _link(address, query, min(page - 1, last))
    return VngAnswer(HTTPStatus.OK, {**members, "results": results})


def _link(address: str, query: Mapping[str, str], page: int) -> str:
    return f"{address}?{urlencode({**query, 'page': page})}"
