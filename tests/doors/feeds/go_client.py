"""A double of the Go client of FeedAPI, with its ways of reading, byte for byte: what it takes, skips, misses and refuses.

rule                     what it does
lines                    scanned into a buffer of 65,536 bytes; a longer line ends the stream without an error
blank line               skipped; one CR before the LF is dropped
line with a cursor       a checkpoint, when the cursor is a text that is not empty; else the line is an event
discovery                ids are texts that hold integers, parents are JSON integers, 0 means no parent
400 to a bare GET        version 1, when the caller gave a number of partitions; an error otherwise
204                      taken for success, with nothing in it
409                      discover again
"""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

BUFFER = 65_536


class GoError(Exception):
    """What the Go client returns as an error."""


class GoClient:
    """Reads a whole feed, parents before their children."""

    def __init__(self, url: str, partitions: int | None = None) -> None:
        self._url = urlsplit(url)
        self._partitions = partitions
        self._token = ""
        self._cursors: dict[int, str] = {}
        self._finished: set[int] = set()

    def discover(self) -> list[dict[str, Any]]:
        status, body = self._get(self._url.path, {})
        if status == 400 and self._partitions is not None:
            self._token = "_v1"
            return [_partition(str(p)) for p in range(self._partitions)]
        if status != 200:
            raise GoError(f"unexpected status {status}")
        found = json.loads(body)
        self._token = _text(found, "token")
        return [_decoded(one) for one in found["partitions"]]

    def read_all(self, page_size: int) -> list[Any]:
        """Every event that is new since the last call."""
        events: list[Any] = []
        again = True
        while again:
            again = False
            for one in self.discover():
                if one["id"] in self._finished or (one["parent"] and one["parent"] not in self._finished):
                    continue
                page = self._page(one, page_size)
                if page is None:
                    again = True
                    break
                events += page
                again = again or bool(page)
        return events

    def read_once(self, partition: str, cursor: str) -> list[Any]:
        self.discover()
        query = {"token": self._token, "partition": partition, "cursor": cursor}
        return self._scanned(self._get(f"{self._url.path}/events", query)[1])[0]

    def _page(self, one: dict[str, Any], page_size: int) -> list[Any] | None:
        known = next((self._cursors[id] for id in (one["id"], *one["ancestors"]) if id in self._cursors), "_first")
        if self._token == "_v1":
            path, query = self._url.path, {"n": self._partitions, f"cursor{one['id']}": known, "pagesizehint": page_size}
        else:
            path = f"{self._url.path}/events"
            query = {"token": self._token, "partition": one["id"], "cursor": known, "pagesizehint": page_size}
        status, body = self._get(path, query)
        if status == 409:
            return None
        if status // 100 != 2:
            raise GoError(f"unexpected status {status}: {body!r}")
        events, cursor = self._scanned(body)
        if one["closed"] and not events and cursor == known:
            self._finished.add(one["id"])
        self._cursors[one["id"]] = cursor or known
        return events

    def _scanned(self, body: bytes) -> tuple[list[Any], str]:
        events, last = [], ""
        for raw in body.split(b"\n")[:-1]:
            if len(raw) >= BUFFER:
                break
            line = raw.removesuffix(b"\r")
            if not line:
                continue
            found = json.loads(line)
            cursor = _text(found, "cursor") if "cursor" in found else ""
            if cursor:
                last = cursor
            else:
                events.append(found.get("data"))
        return events, last

    def _get(self, path: str, query: dict[str, Any]) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(self._url.hostname or "", self._url.port, timeout=120)
        # Keys in alphabetical order, as Go's url.Values writes them.
        text = urlencode(sorted(query.items()), quote_via=quote)
        try:
            connection.request("GET", f"{path}?{text}" if text else path)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


def _partition(id: str, parent: int = 0, ancestors: tuple[int, ...] = (), closed: bool = False) -> dict[str, Any]:
    return {"id": int(id), "parent": parent, "ancestors": ancestors, "closed": closed}


def _decoded(one: dict[str, Any]) -> dict[str, Any]:
    parent, ancestors = one.get("startsAfterPartition", 0), one.get("cursorFromPartitions", [])
    for value in (parent, *ancestors):
        if not isinstance(value, int):
            raise GoError("json: cannot unmarshal string into Go struct field of type int")
    return _partition(_text(one, "id"), parent, tuple(ancestors), bool(one.get("closed", False)))


def _text(found: dict[str, Any], name: str) -> str:
    value = found[name]
    if not isinstance(value, str):
        raise GoError(f"json: cannot unmarshal {type(value).__name__} into Go struct field {name} of type string")
    return value
