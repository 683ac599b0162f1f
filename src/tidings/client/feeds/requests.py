"""What is asked of a feed: the addresses of both versions. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

from tidings.client.feeds.discovery import V1, Discovery
from tidings.client.feeds.start_plan import LAST
from tidings.errors import Misconfigured

RESUME = ""
"""Instead of a cursor: go on from what the publisher keeps under the name of the cursor set."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What is wanted of every page."""

    page_size: int | None = None
    wait: int | None = None
    event_types: Sequence[str] | None = None
    event_headers: str | None = None
    cursorset: str | None = None

    def __post_init__(self) -> None:
        for name, value, least in (("page_size", self.page_size, 1), ("wait", self.wait, 0)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
                raise Misconfigured("this cannot be asked of a feed", at=name, found=value, expected=f"at least {least}")
        if isinstance(self.event_types, str):
            raise Misconfigured("one text is no list of types", at="event_types", found=self.event_types, expected='["a", "b"]')


@dataclass(frozen=True, slots=True)
class FeedAddress:
    """A feed by its address. A query that the address has is kept on every request."""

    url: str

    def __post_init__(self) -> None:
        if not _is_address(self.url):
            raise Misconfigured(
                "the address of the feed cannot be read", found=self.url, expected="such as http://127.0.0.1:8484/feeds/orders"
            )

    @property
    def name(self) -> str:
        """The address as cursors are kept under it: one for all ways to write it, and without credentials.

        Two names of one server, such as localhost and 127.0.0.1, stay two.
        """
        parts = urlsplit(self.url)
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
        usual = parts.port in (None, 443 if parts.scheme == "https" else 80)
        netloc = host if usual else f"{host}:{parts.port}"
        return urlunsplit((parts.scheme, netloc, parts.path.rstrip("/"), parts.query, ""))

    def page(self, discovery: Discovery, cursors: Mapping[str, str], wishes: Wishes) -> str:
        """The address of the next page of these partitions: one, or several in version 1."""
        asked = _of_v1(discovery, cursors) if discovery.version == V1 else _of_v2(discovery, cursors)
        if discovery.version == V1 and wishes.event_headers:
            asked.append(("headers", wishes.event_headers))
        # What is there now is wanted of `_last`: while it waited, events would pass before a cursor is known.
        wait = None if LAST in cursors.values() else wishes.wait
        asked += [("pagesizehint", wishes.page_size), ("wait", wait or None), ("cursorset", wishes.cursorset)]
        if wishes.event_types is not None:
            asked.append(("event-types", ";".join(wishes.event_types)))
        return self._with(asked, "" if discovery.version == V1 else "/events")

    def keeping(self, discovery: Discovery, partition: str, cursor: str, cursorset: str) -> str:
        """The address that makes the publisher keep a cursor and read nothing."""
        cursors = {partition: cursor}
        asked = _of_v1(discovery, cursors) if discovery.version == V1 else _of_v2(discovery, cursors)
        asked += [("cursorset", cursorset), ("store_cursor", 1), ("pagesizehint", 0)]
        return self._with(asked, "" if discovery.version == V1 else "/events")

    def _with(self, asked: Sequence[tuple[str, object]], below: str) -> str:
        parts = urlsplit(self.url)
        query = urlencode([(name, str(value)) for name, value in asked if value is not None], quote_via=quote)
        joined = "&".join(one for one in (parts.query, query) if one)
        return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/") + below if below else parts.path, joined, ""))


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _of_v1(discovery: Discovery, cursors: Mapping[str, str]) -> list[tuple[str, object]]:
    asked: list[tuple[str, object]] = [("n", len(discovery.partitions))]
    resumed = [partition for partition, cursor in cursors.items() if cursor == RESUME]
    asked += [(f"cursor{partition}", cursor) for partition, cursor in cursors.items() if cursor != RESUME]
    return asked + ([("resume", ",".join(resumed))] if resumed else [])


def _of_v2(discovery: Discovery, cursors: Mapping[str, str]) -> list[tuple[str, object]]:
    ((partition, cursor),) = cursors.items()
    asked: list[tuple[str, object]] = [("token", discovery.token), ("partition", partition)]
    return [*asked, ("resume", partition) if cursor == RESUME else ("cursor", cursor)]
