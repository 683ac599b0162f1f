"""The feeds door as one application: `GET /feeds`, `GET /feeds/{topic}`, `GET /feeds/{topic}/events`. Bare ASGI."""

from __future__ import annotations

import asyncio
import logging
from http import HTTPStatus
from urllib.parse import unquote

import msgspec

from tidings.access.authentication import address_of
from tidings.access.cross_origin import refuse_strangers
from tidings.access.principals import Principal, Right
from tidings.access.settings_checks import OPEN
from tidings.delivery.feeds.long_polls import LaneLongPolls, LongPolls
from tidings.delivery.feeds.partitions import discovery
from tidings.doors.api_parts import ApiParts
from tidings.doors.feeds.aliases import Aliases
from tidings.doors.feeds.door import PREFIX
from tidings.doors.feeds.feed_list import listing
from tidings.doors.feeds.feed_lookup import Feeds, OpenFeed
from tidings.doors.feeds.kept_cursors import CursorKeeping, consumer_of
from tidings.doors.feeds.query import Query, wants_bytes
from tidings.doors.feeds.refusals import FeedRefused, refused, stopping, wrong_method
from tidings.doors.feeds.request import FeedRequest, asked_v1, asked_v2, showing
from tidings.doors.feeds.response import FeedResponse
from tidings.doors.feeds.wait_seats import Waits
from tidings.errors import TidingsError
from tidings.problems import problem_of, unexpected
from tidings.registry.feeds import FeedVersions
from tidings.server.asgi import App, Receive, Scope, Send, answer_problem

JSON = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]

logger = logging.getLogger("tidings.feeds")


class FeedsApplication:
    """Answers every request below `/feeds`, and those to aliases of feeds. Belongs to one event loop."""

    def __init__(self, parts: ApiParts) -> None:
        self._parts = parts
        self._trusting = parts.settings.access.mode == OPEN
        self._turns = asyncio.Lock()
        self._feeds = Feeds(parts)
        self._keeping = CursorKeeping(parts)
        self._aliases = Aliases()
        self._waits = Waits(
            LongPolls(self._feeds.slices, parts.waiting, lambda: parts.snapshot.revision),
            LaneLongPolls(parts.lanes, parts.lane_waiting),
            parts.settings.feeds.long_polls,
            parts.board,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; whatever goes wrong before the first byte has its status."""
        path = scope["path"]
        try:
            if self._trusting:
                refuse_strangers(scope["headers"])
            gate = self._parts.gate
            by = gate.identify_cached(scope["headers"]) or await gate.identify(scope["headers"], address_of(scope))
            await self._answer(by, scope, send)
        except FeedRefused as refusal:
            await answer_problem(send, refusal.at(path))
        except TidingsError as error:
            await answer_problem(send, problem_of(error, path))
        except Exception:
            logger.exception("answering %s failed", path)
            await answer_problem(send, unexpected(path))

    async def _answer(self, by: Principal, scope: Scope, send: Send) -> None:
        if self._parts.waiting.over:
            raise stopping()
        name, events = self._meant(scope["raw_path"].decode("latin-1"))
        if not name:
            by.require(Right.READ)
            _only(scope["method"], "GET", "HEAD")
            await _answer_json(send, scope["method"], listing(self._parts, self._feeds, by))
            return
        feed = self._feeds.of(by, name)
        query = Query(scope["query_string"])
        if events or "n" in query:
            _only(scope["method"], "GET")
            asked = await (asked_v2 if events else asked_v1)(feed, query, self._keeping.stored(by, feed))
            asked = asked if wants_bytes(query) else showing(asked, self._parts.current.schemas)
            await self._events(by, asked, scope, send)
            return
        _only(scope["method"], "GET", "HEAD")
        await _answer_json(send, scope["method"], _discovered(feed, query))

    async def _events(self, by: Principal, asked: FeedRequest, scope: Scope, send: Send) -> None:
        await self._keeping.keep(by, asked)
        answer = FeedResponse(self._parts, asked, by, scope, send)
        if asked.keeping is not None and asked.keeping.only:
            await answer.store_only()
        else:
            await answer.run(self._turns, self._waits)
        self._note(consumer_of(by), asked, answer)

    def _note(self, consumer: str, asked: FeedRequest, answer: FeedResponse) -> None:
        """Access is counted and logged by who reads, which feed, which partition (FEED-28)."""
        board, feed = self._parts.board, asked.feed.label
        board.count("tidings_feed_requests_total", consumer=consumer, feed=feed, version=asked.version)
        for partition, events in answer.counts().items():
            board.count("tidings_feed_events_total", events, consumer=consumer, feed=feed, partition=str(partition))
        if logger.isEnabledFor(logging.INFO):
            partitions = ",".join(str(place.partition) for place in asked.places[:8])
            logger.info("%s read %d events of %s, partition %s", consumer or "anonymous", answer.served, feed, partitions)

    def _meant(self, path: str) -> tuple[str, bool]:
        """The feed that an address means, empty for the list of all, and whether its events are meant. Raises Refused."""
        if not path.startswith(PREFIX) or path[len(PREFIX) : len(PREFIX) + 1] not in ("", "/"):
            found = self._aliases.meaning(self._parts.snapshot, unquote(path))
            if found is not None:
                return found
        # Addresses with a slash at the end are common, and clients put `/events` behind it.
        match [part for part in path.removeprefix(PREFIX).split("/") if part]:
            case []:
                return "", False
            case [name]:
                return unquote(name), False
            case [name, "events"]:
                return unquote(name), True
        raise refused("not-found", f"there is nothing at {path[:80]}", HTTPStatus.NOT_FOUND)


def _discovered(feed: OpenFeed, query: Query) -> object:
    if query.means_v1 or feed.settings.versions is FeedVersions.V1:
        raise refused("n-missing", "n is missing: the number of partitions to divide the feed by, such as n=4")
    return discovery(feed.identity, feed.settings, consistent=feed.consistent)


def _only(method: str, *allowed: str) -> None:
    if method not in allowed:
        raise wrong_method(method, ", ".join(allowed))


async def _answer_json(send: Send, method: str, body: object) -> None:
    raw = msgspec.json.encode(body)
    headers = [*JSON, (b"content-length", b"%d" % len(raw))]
    await send({"type": "http.response.start", "status": HTTPStatus.OK, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if method == "HEAD" else raw})


def open_door(parts: ApiParts) -> App:
    """The application over these parts."""
    return FeedsApplication(parts)
