"""Streams: `GET /v1/{environment}/sse/{subscriptionId}` and the public paths (HOR-03, HOR-133 to HOR-144, HOR-179). Bare ASGI."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import NamedTuple, TypeAlias
from urllib.parse import parse_qsl

import msgspec

from tidings.access.cross_origin import refuse_strangers
from tidings.clock import rfc3339
from tidings.doors.api_parts import ApiParts
from tidings.doors.horizon.callers import Client, entered, identified
from tidings.doors.horizon.layout import HorizonLayout
from tidings.doors.horizon.names import subscription_name
from tidings.doors.horizon.refusals import Refusal, mistake, plain_refusal, refusal_of
from tidings.doors.horizon.stream.frames import content_type, framing
from tidings.doors.horizon.stream.tickets import LIFE, Tickets
from tidings.doors.horizon.views.states import require_active, topic_of
from tidings.doors.requests.query_parameters import refuse_unknown
from tidings.doors.sse.lane_stream import terminate
from tidings.doors.sse.message_ids import last_seen
from tidings.doors.sse.response import W3C, StreamLimits, StreamRequest, Style, answer_stream
from tidings.errors import Conflict, EventFault, Forbidden, InvalidDocument, NotFound, TidingsError
from tidings.registry.model import Stream, Subscription
from tidings.server.asgi import Receive, Scope, Send

logger = logging.getLogger("tidings.horizon")

_PATH = re.compile(
    r"(?:/v1/(?P<named>[^/]+)/sse|(?:/(?P<virtual>[^/]+))?/horizon/sse/v1(?:/(?P<type>[^/]+))?)"
    r"(?:/(?P<subscription>[0-9a-f]{40}))?(?:/(?P<act>terminate|ticket))?/?"
)
_PARAMETERS = ("maxNumber", "maxBytes", "maxMinutes", "includeHttpHeaders", "lastEventId", "ticket")
_METHODS = {None: "GET", "terminate": "POST", "ticket": "POST"}

Headers: TypeAlias = Mapping[bytes, bytes]
Query: TypeAlias = Mapping[str, str]
Shared: TypeAlias = list[tuple[bytes, bytes]]
"""Headers that let a page of an allowed origin read an answer; none for others."""


class StreamPath(NamedTuple):
    """What a path of streams means. `subscription` empty: the door's health. `type` None: it names none."""

    environment: str
    subscription: str
    type: str | None
    act: str | None


class Streams:
    """Answers everything about streams."""

    def __init__(self, parts: ApiParts) -> None:
        self._parts = parts
        self._tickets = Tickets(parts.clock)

    def place(self, path: str) -> StreamPath | None:
        """What a path means here; None: it is none of ours."""
        found = _PATH.fullmatch(path)
        if found is None or (found["act"] and not found["subscription"]):
            return None
        environment = found["named"] or found["virtual"] or self._parts.settings.horizon.environment
        return StreamPath(environment, found["subscription"] or "", found["type"], found["act"])

    async def __call__(self, scope: Scope, receive: Receive, send: Send, place: StreamPath) -> None:
        headers = dict(scope["headers"])
        shared = self._shared(headers)
        try:
            await self._answer(scope, receive, send, place, headers, shared)
        except TidingsError as error:
            await _refuse(send, refusal_of(error), shared)
        except Exception:
            logger.exception("%s %s failed", scope["method"], scope["path"])
            await _refuse(send, mistake(), shared)

    async def _answer(
        self, scope: Scope, receive: Receive, send: Send, place: StreamPath, headers: Headers, shared: Shared
    ) -> None:
        method = scope["method"]
        if method == "HEAD":
            now = rfc3339(self._parts.clock.now())[:-4] + "Z"
            await _plain(send, HTTPStatus.NO_CONTENT, [(b"x-health-check-timestamp", now.encode())])
            return
        if method == "OPTIONS" and shared:
            allowed = (b"access-control-allow-headers", b"authorization, last-event-id")
            await _plain(send, HTTPStatus.NO_CONTENT, [*shared, (b"access-control-allow-methods", b"GET, POST"), allowed])
            return
        if not place.subscription:
            raise NotFound("there is no stream without the id of a subscription")
        if method != _METHODS[place.act]:
            told = plain_refusal(HTTPStatus.METHOD_NOT_ALLOWED, f"{method} is not possible here; {_METHODS[place.act]} is")
            await _refuse(send, told, [*shared, (b"allow", _METHODS[place.act].encode())])
            return
        query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
        refuse_unknown(query, _PARAMETERS)
        subscription = await self._subscription(scope, place, query.get("ticket"), shared)
        match place.act:
            case "terminate":
                await terminate(self._parts, subscription.lane)
                await _json(send, {"terminated": place.subscription}, shared)
            case "ticket":
                require_active(self._parts.snapshot, subscription)
                await _json(send, {"ticket": self._tickets.give(subscription.name), "expiresIn": int(LIFE)}, shared)
            case _:
                require_active(self._parts.snapshot, subscription)
                asked = await self._asked(subscription, query, headers)
                style = self._style(subscription, query, headers, shared)
                await answer_stream(self._parts, asked, style, scope, receive, send)

    async def _subscription(self, scope: Scope, place: StreamPath, ticket: str | None, shared: Shared) -> Subscription:
        """The subscription that is meant, for its subscriber. A ticket stands for a token."""
        if not shared:
            self._refuse_pages(scope["headers"])
        client = _HOLDER if ticket is not None else await identified(self._parts, scope)
        name = subscription_name(entered(client, place.environment, self._parts.settings.horizon), place.subscription)
        if ticket is not None:
            self._tickets.take(ticket, name)
        found = self._parts.snapshot.subscriptions.get(name)
        if found is None or not (client.unchecked or client.id == found.owner):
            raise Forbidden("this subscription does not belong to the caller, or there is none", found=place.subscription)
        if place.type is not None and place.type != topic_of(found).name:
            raise NotFound("the subscription is for another event type", found=place.type)
        if not isinstance(found.delivery, Stream):
            raise Conflict("this subscription is delivered by callback", expected="deliveryType server_sent_event")
        return found

    def _refuse_pages(self, headers: list[tuple[bytes, bytes]]) -> None:
        """Keep out pages from elsewhere: their browser would throw away what counts as delivered here."""
        if self._parts.trusting:
            refuse_strangers(headers)
        named = dict(headers)
        origin = named.get(b"origin")
        if origin is not None and origin.partition(b"://")[2] != named.get(b"host"):
            expected = "a page whose origin the setting sse.origins names"
            raise Forbidden("this page may not read streams", at="origin", found=origin.decode("latin-1"), expected=expected)

    async def _asked(self, subscription: Subscription, query: Query, headers: Headers) -> StreamRequest:
        cut = StreamLimits(
            number=int(_amount(query, "maxNumber", whole=True)),
            bytes=int(_amount(query, "maxBytes", whole=True)),
            seconds=60 * _amount(query, "maxMinutes"),
        )
        after = await last_seen(self._parts, subscription, _last_event(query, headers))
        return StreamRequest(subscription.lane, after, cut)

    def _style(self, subscription: Subscription, query: Query, headers: Headers, shared: Shared) -> Style:
        settings, layout = self._parts.settings, _layout(subscription)
        kind = content_type(headers.get(b"accept"))
        with_headers = query.get("includeHttpHeaders", "").lower() == "true" or bool(_last_event(query, headers))
        beats = settings.sse.keep_alive > 0 and kind == W3C
        return Style(
            kind,
            framing(kind, layout, settings.hub_url, headers=with_headers),
            shared,
            keep_alive=settings.sse.keep_alive if beats else float("inf"),
            idle=settings.sse.idle,
            at_once=beats,
        )

    def _shared(self, headers: Headers) -> Shared:
        """What lets a page of an allowed origin read the answer."""
        origin, allowed = headers.get(b"origin"), self._parts.settings.sse.origins
        if origin is None or not ("*" in allowed or origin.decode("latin-1") in allowed):
            return []
        return [(b"access-control-allow-origin", origin), (b"vary", b"origin")]


_HOLDER = Client(id="", realm="", admin=False, unchecked=True, writes=False)
"""Stands for whoever holds a ticket: it says itself what it is good for."""


def _layout(subscription: Subscription) -> HorizonLayout:
    assert isinstance(subscription.delivery, Stream) and subscription.delivery.layout is not None
    return subscription.delivery.layout.read(HorizonLayout)


def _last_event(query: Query, headers: Headers) -> str:
    """The id of the event that a client saw last. A page that opens a stream anew can only write it into the address."""
    return headers.get(b"last-event-id", b"").decode("latin-1") or query.get("lastEventId", "")


def _amount(query: Query, name: str, *, whole: bool = False) -> float:
    """A limit of a stream; 0 for none. Raises InvalidDocument."""
    text = query.get(name, "0")
    pattern = r"[0-9]{1,15}" if whole else r"[0-9]{1,9}(\.[0-9]{1,9})?"
    if re.fullmatch(pattern, text) is None:
        raise InvalidDocument([EventFault(0, name, "invalid", "expected a number that is 0 or more")])
    return float(text)


async def _refuse(send: Send, refusal: Refusal, shared: Shared) -> None:
    await _plain(send, refusal.status, [*refusal.headers(), *shared], refusal.body())


async def _json(send: Send, value: object, shared: Shared) -> None:
    await _plain(send, HTTPStatus.OK, [(b"content-type", b"application/json"), *shared], msgspec.json.encode(value))


async def _plain(send: Send, status: int, headers: Shared, body: bytes = b"") -> None:
    if status != HTTPStatus.NO_CONTENT:
        headers = [*headers, (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
