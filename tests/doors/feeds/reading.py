"""Reading feeds in tests: a topic of its own for every test, requests, and answers taken apart."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from tests.api_process import ApiProcess
from tests.hub import Answer
from tests.polling import until

_names = itertools.count(1)


@dataclass
class Page:
    """An answer taken apart: events and cursors by partition (None for v2), in their order."""

    lines: list[Any]
    events: list[tuple[int | None, Any]] = field(default_factory=list)
    cursors: dict[int | None, str] = field(default_factory=dict)

    @property
    def ids(self) -> list[str]:
        return [event["id"] for _, event in self.events]

    @property
    def cursor(self) -> str:
        (cursor,) = self.cursors.values()
        return cursor


def taken_apart(answer: Answer) -> Page:
    assert answer.status == 200, answer.body
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.body.endswith(b"\n")
    page = Page([json.loads(line) for line in answer.body.split(b"\n") if line])
    for line in page.lines:
        if "data" in line:
            page.events.append((line.get("partition"), line["data"]))
        else:
            page.cursors[line.get("partition")] = line["cursor"]
    return page


def metric(api: ApiProcess, name: str, *words: str) -> float:
    for line in api.call("GET", "/metrics").body.decode().splitlines():
        if line.partition(" ")[0].partition("{")[0] == name and all(word in line for word in words):
            return float(line.rpartition(" ")[2])
    return 0.0


def until_waiting(api: ApiProcess, requests: int) -> None:
    """Return once so many requests wait in the api."""
    until(lambda: metric(api, "tidings_feed_waiting") == requests, f"{requests} are waiting")


class Feed:
    """One topic and its feed."""

    def __init__(self, api: ApiProcess, partitions: int = 4, name: str | None = None, **settings: Any) -> None:
        self.api = api
        self.name = name or f"topic-{next(_names)}"
        # Ids from 0, so that a test can name the partitions of both versions alike.
        feed = {"partitions": partitions, "firstPartitionId": 0, **settings.pop("feed", {})}
        answer = api.call("PUT", f"/api/topics/{quote(self.name, safe='')}", {"feed": feed, **settings})
        assert answer.status == 201, answer.body
        self._ids = itertools.count(1)

    @property
    def path(self) -> str:
        return f"/feeds/{quote(self.name, safe='')}"

    def publish(self, *events: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> list[str]:
        """Publish events with these members on top of the required ones; their ids."""
        whole = [{"specversion": "1.0", "source": "/s", "type": "t", "id": str(next(self._ids)), **one} for one in events]
        for at in range(0, len(whole), 1000):
            answer = self.api.call(
                "POST",
                f"/api/topics/{quote(self.name, safe='')}/events",
                whole[at : at + 1000],
                {"content-type": "application/cloudevents-batch+json", **(headers or {})},
            )
            assert answer.status == 202, answer.body
        return [str(one["id"]) for one in whole]

    def after(self, id: int) -> int:
        """The cursor after the event of this id, where ids count all events of the topic from 1."""
        last = next(self._ids) - 1
        self._ids = itertools.count(last + 1)
        return int(self.v1(1, {0: "_last"}).cursors[0]) - last + id

    def publish_keyed(self, count: int, keys: int = 50) -> list[str]:
        """So many events, the keys in turn."""
        return self.publish(*({"subject": f"key-{n % keys}", "data": {"n": n}} for n in range(count)))

    def get(self, below: str = "", sent: Mapping[str, str] | None = None, **query: object) -> Answer:
        return self.raw(below + (f"?{urlencode(query)}" if query else ""), sent)

    def raw(self, rest: str, sent: Mapping[str, str] | None = None) -> Answer:
        return self.api.call("GET", f"{self.path}{rest}", headers=sent)

    def v1(self, n: int, cursors: Mapping[int, object], **query: object) -> Page:
        return taken_apart(self.get(n=n, **{f"cursor{p}": cursor for p, cursor in cursors.items()}, **query))

    def discover(self) -> Any:
        answer = self.get()
        assert answer.status == 200 and answer.headers["content-type"] == "application/json"
        return answer.json

    def v2(self, partition: object, cursor: object, token: str | None = None, **query: object) -> Page:
        wanted = {"token": token or self.discover()["token"], "partition": partition, "cursor": cursor, **query}
        return taken_apart(self.get("/events", **wanted))

    def all_v1(self, n: int, partition: int, cursor: object = "_first", **query: object) -> list[Any]:
        """Every event of one virtual partition after a cursor."""
        events: list[Any] = []
        while True:
            page = self.v1(n, {partition: cursor}, **query)
            events += [event for _, event in page.events]
            if not page.events and page.cursors[partition] == str(cursor):
                return events
            cursor = page.cursors[partition]

    def all_v2(self, partition: object, cursor: object = "_first", **query: object) -> list[Any]:
        """Every event of one partition after a cursor."""
        events: list[Any] = []
        while True:
            page = self.v2(partition, cursor, **query)
            events += [event for _, event in page.events]
            if not page.events and page.cursor == str(cursor):
                return events
            cursor = page.cursor

    def repartition(self, method: str, count: int) -> Answer:
        return self.api.call("POST", f"/api/feeds/{quote(self.name, safe='')}/partitions", {"method": method, "count": count})


def by_key(events: Iterable[Any]) -> dict[str, list[str]]:
    """The ids of events by their keys, in their order."""
    found: dict[str, list[str]] = {}
    for event in events:
        found.setdefault(event.get("subject", event["id"]), []).append(event["id"])
    return found


def code_of(answer: Answer) -> tuple[int, str]:
    """Status and code of a refusal, which must be a whole problem."""
    assert answer.headers["content-type"] == "application/problem+json", answer
    problem = answer.json
    assert {"type", "title", "status", "detail", "instance", "code"} <= problem.keys()
    assert problem["status"] == answer.status
    return answer.status, problem["code"]
