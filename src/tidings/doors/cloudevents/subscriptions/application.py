"""Everything of the door but publishing, as a bare ASGI application: few paths, and a document that describes them.

A table of paths says which methods each knows. OPTIONS answers with them, other methods are 405 with `Allow` (SUB-08).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import TypeAlias

from tidings.access.authentication import address_of
from tidings.access.cross_origin import refuse_strangers
from tidings.doors import handshakes
from tidings.doors.api_parts import ApiParts
from tidings.doors.cloudevents.names import CONFIRM, PREFIX
from tidings.doors.cloudevents.subscriptions import resource
from tidings.doors.cloudevents.subscriptions.openapi import document
from tidings.doors.cloudevents.subscriptions.request import SubscriptionsReply, SubscriptionsRequest
from tidings.doors.requests.query_parameters import refuse_unknown
from tidings.errors import NotFound, TidingsError
from tidings.problems import problem_of, transport_problem, unexpected
from tidings.server.asgi import App, ClientLeft, Receive, Scope, Send, answer, answer_problem

Handler: TypeAlias = Callable[[SubscriptionsRequest], Awaitable[SubscriptionsReply]]

logger = logging.getLogger("tidings.cloudevents")

_ONE = r"/subscriptions/(?P<id>[^/]+)"
_PATHS: tuple[tuple[re.Pattern[str], Mapping[str, Handler]], ...] = (
    (re.compile("/subscriptions"), {"GET": resource.listed, "POST": resource.created}),
    (re.compile(_ONE), {"GET": resource.retrieved, "PUT": resource.replaced, "DELETE": resource.deleted}),
    (re.compile(f"{_ONE}/secret/rotate"), {"POST": resource.key_rotated}),
    (re.compile(f"{_ONE}/enable"), {"POST": resource.enabled}),
)
_OPENAPI = "/openapi.json"


def subscriptions_app(parts: ApiParts) -> App:
    """The application over these parts."""
    return SubscriptionsApplication(parts)


class SubscriptionsApplication:
    """Sees paths without the door's prefix."""

    def __init__(self, parts: ApiParts) -> None:
        self._parts = parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            reply = await self._answered(scope, receive)
        except TidingsError as error:
            await answer_problem(send, problem_of(error, scope["path"]))
        except ClientLeft:
            pass
        except Exception:
            logger.exception("%s %s failed", scope["method"], scope["path"])
            await answer_problem(send, unexpected(scope["path"]))
        else:
            await answer(send, reply.status, reply.lines(), reply.body())

    async def _answered(self, scope: Scope, receive: Receive) -> SubscriptionsReply:
        path, method = scope["path"], scope["method"]
        prefix = PREFIX if scope.get("raw_path", b"").startswith(PREFIX.encode()) else ""
        if path == _OPENAPI:
            return SubscriptionsReply(HTTPStatus.OK, document(prefix)) if method == "GET" else _not_allowed(("GET",))
        if path.startswith(CONFIRM):
            return await self._confirmed(scope, path[len(CONFIRM) :])
        for pattern, methods in _PATHS:
            found = pattern.fullmatch(path)
            if found is None:
                continue
            if method == "OPTIONS":
                return SubscriptionsReply(HTTPStatus.OK, headers={"allow": _listed(tuple(methods))})
            handler = methods.get(method)
            if handler is None:
                return _not_allowed(tuple(methods))
            return await handler(await self._asked(scope, receive, prefix, found.groupdict().get("id", "")))
        raise NotFound(f"there is nothing at {prefix}{path}")

    async def _asked(self, scope: Scope, receive: Receive, prefix: str, id: str) -> SubscriptionsRequest:
        if self._parts.trusting:
            refuse_strangers(scope["headers"])
        if scope["query_string"]:
            refuse_unknown((scope["query_string"].decode("latin-1").partition("=")[0],), ())
        caller = await self._parts.gate.identify(scope["headers"], address_of(scope))
        return SubscriptionsRequest(self._parts, caller, scope, receive, prefix, id)

    async def _confirmed(self, scope: Scope, secret: str) -> SubscriptionsReply:
        """A sink consents by the callback that the handshake offered it (WH-13). The secret says who it is."""
        if scope["method"] not in ("GET", "POST"):
            return _not_allowed(("GET", "POST"))
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        stored = await handshakes.confirmed(self._parts, secret, headers)
        return SubscriptionsReply(HTTPStatus.OK, {"subscription": stored.name.name})


def _not_allowed(methods: tuple[str, ...]) -> SubscriptionsReply:
    allowed = _listed(methods)
    problem = transport_problem(HTTPStatus.METHOD_NOT_ALLOWED, "method-not-allowed", f"this path knows {allowed}")
    return SubscriptionsReply(problem.status, problem, {"allow": allowed, "content-type": "application/problem+json"})


def _listed(methods: tuple[str, ...]) -> str:
    return ", ".join((*methods, "OPTIONS"))
