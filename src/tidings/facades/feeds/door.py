"""The feeds door as one application: `GET /feeds`, `GET /feeds/{topic}`, `GET /feeds/{topic}/events`. Bare ASGI."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from urllib.parse import unquote

import msgspec

from tidings.access.browsers import refuse_strangers
from tidings.access.principals import Principal
from tidings.access.rules import OPEN
from tidings.delivery.feeds.layout import discovery
from tidings.errors import TidingsError
from tidings.facades.doors import App
from tidings.facades.feeds.answering import Answer
from tidings.facades.feeds.asking import Asked, asked_v1, asked_v2
from tidings.facades.feeds.finding import OpenFeed, open_feed
from tidings.facades.feeds.query import Query
from tidings.facades.feeds.refusals import Refused, refused, stopping, wrong_method
from tidings.facades.parts import Parts
from tidings.ingest.asgi import Receive, Scope, Send, answer_problem
from tidings.problems import problem_of, unexpected
from tidings.registry.feeds import FeedVersions

PREFIX, EVENTS = "/feeds", "/events"

logger = logging.getLogger("tidings.feeds")


class FeedDoor:
    """Answers every request below `/feeds`."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._trusting = parts.settings.access.mode == OPEN
        self._turns = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; whatever goes wrong before the first byte has its status."""
        path = scope["path"]
        try:
            if self._trusting:
                refuse_strangers(scope["headers"])
            gate = self._parts.gate
            by = gate.identify_cached(scope["headers"]) or await gate.identify(scope["headers"])
            await self._answer(by, scope, send)
        except Refused as refusal:
            await answer_problem(send, refusal.at(path))
        except TidingsError as error:
            await answer_problem(send, problem_of(error, path))
        except Exception:
            logger.exception("answering %s failed", path)
            await answer_problem(send, unexpected(path))

    async def _answer(self, by: Principal, scope: Scope, send: Send) -> None:
        if self._parts.waiting.over:
            raise stopping()
        name, events = _place(scope["raw_path"].decode("latin-1"))
        feed = open_feed(self._parts, by, name)
        query = Query(scope["query_string"])
        if events or "n" in query:
            _only(scope["method"], "GET")
            asked = (asked_v2 if events else asked_v1)(feed, query, self._stored(by, feed))
            await self._events(by, asked, scope, send)
            return
        _only(scope["method"], "GET", "HEAD")
        await _answer_json(send, scope["method"], self._discovered(feed, query))

    def _discovered(self, feed: OpenFeed, query: Query) -> object:
        if query.means_v1 or feed.settings.versions is FeedVersions.V1:
            raise refused("n-missing", "n is missing: the number of partitions to divide the feed by, such as n=4")
        return discovery(feed.key, feed.settings, exactly_once=feed.exactly_once, consistent=feed.consistent)

    def _stored(self, by: Principal, feed: OpenFeed):  # type: ignore[no-untyped-def]
        def stored(name: str, version: str, count: int, partitions: Sequence[int]) -> Mapping[int, int]:
            return {}

        return stored

    async def _events(self, by: Principal, asked: Asked, scope: Scope, send: Send) -> None:
        await Answer(self._parts, asked, scope, send).run(self._turns)


def _place(path: str) -> tuple[str, bool]:
    """The name in an address, and whether its events are meant. Raises Refused."""
    words = path.removeprefix(PREFIX).split("/")
    match words:
        case ["", name]:
            return unquote(name), False
        case ["", name, "events"]:
            return unquote(name), True
        case _:
            raise refused("not-found", f"there is nothing at {path[:80]}", HTTPStatus.NOT_FOUND)


def _only(method: str, *allowed: str) -> None:
    if method not in allowed:
        raise wrong_method(method, ", ".join(allowed))


async def _answer_json(send: Send, method: str, body: object) -> None:
    raw = msgspec.json.encode(body)
    headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-store"), (b"content-length", b"%d" % len(raw))]
    await send({"type": "http.response.start", "status": HTTPStatus.OK, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if method == "HEAD" else raw})


def open_door(parts: Parts) -> App:
    """The application over these parts."""
    return FeedDoor(parts)
