"""Which resource answers a path and a method of `/domains` and `/subscriptions`."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, NamedTuple, TypeAlias

from tidings.access.authentication import address_of
from tidings.access.cross_origin import refuse_strangers
from tidings.doors.api_parts import ApiParts
from tidings.doors.requests.error_form import tried
from tidings.doors.vng.refusals import FORM, VngRefusal
from tidings.doors.vng.resources import domains, subscriptions
from tidings.doors.vng.resources.request import VngAnswer, VngRequest, accepts
from tidings.server.asgi import ClientLeft, Receive, Scope, Send, answer

Handler: TypeAlias = Callable[..., Awaitable[VngAnswer]]

_DOMAINS: Mapping[str, Handler] = {"GET": domains.list_domains, "POST": domains.create_domain}
_DOMAIN: Mapping[str, Handler] = {"GET": domains.show_domain}
_WRITABLE_DOMAIN: Mapping[str, Handler] = {
    **_DOMAIN,
    "PUT": domains.replace_domain,
    "PATCH": domains.patch_domain,
    "DELETE": domains.delete_domain,
}
_SUBSCRIPTIONS: Mapping[str, Handler] = {
    "GET": subscriptions.list_subscriptions,
    "POST": subscriptions.create_subscription,
}
_SUBSCRIPTION: Mapping[str, Handler] = {
    "GET": subscriptions.show_subscription,
    "PUT": subscriptions.replace_subscription,
    "PATCH": subscriptions.patch_subscription,
    "DELETE": subscriptions.delete_subscription,
}
_PATH = re.compile(r"/(domains|subscriptions)(?:/([^/]+))?/?")


class FoundRoute(NamedTuple):
    """What answers at a path, and the id in it."""

    handlers: Mapping[str, Handler]
    ids: tuple[str, ...]


class Resources:
    """Answers everything of the door but publishing."""

    def __init__(self, parts: ApiParts) -> None:
        self._parts = parts
        domain = _WRITABLE_DOMAIN if parts.settings.vng.domain_write else _DOMAIN
        self._handlers = {
            ("domains", False): _DOMAINS,
            ("domains", True): domain,
            ("subscriptions", False): _SUBSCRIPTIONS,
            ("subscriptions", True): _SUBSCRIPTION,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        try:
            done = await tried(self._answered(scope, receive), FORM, scope["path"])
        except ClientLeft:
            return
        body = done.body() if isinstance(done, VngRefusal) else done.encoded()
        if done.status is HTTPStatus.NO_CONTENT:
            await send({"type": "http.response.start", "status": done.status, "headers": done.headers()})
            await send({"type": "http.response.body", "body": b""})
            return
        await answer(send, done.status, done.headers(), body)

    async def _answered(self, scope: Scope, receive: Receive) -> VngAnswer | VngRefusal:
        parts, headers = self._parts, scope["headers"]
        if parts.trusting:
            refuse_strangers(headers)
        by = parts.gate.identify_cached(headers) or await parts.gate.identify(headers, address_of(scope))
        route = self._route(scope["path"])
        if route is None:
            return VngRefusal(HTTPStatus.NOT_FOUND, f"there is nothing at {scope['path'][:200]}")
        handler = route.handlers.get(scope["method"])
        if handler is None:
            allow = ", ".join(route.handlers)
            return VngRefusal(HTTPStatus.METHOD_NOT_ALLOWED, f"expected {allow}", allow=allow)
        if not accepts(headers):
            return VngRefusal(HTTPStatus.NOT_ACCEPTABLE, "answers are application/json or application/problem+json")
        request = VngRequest(parts, by, door_address(parts, scope), scope, receive)
        return await handler(request, *route.ids)

    def _route(self, path: str) -> FoundRoute | None:
        found = _PATH.fullmatch(path)
        if found is None:
            return None
        return FoundRoute(self._handlers[found[1], found[2] is not None], (found[2],) if found[2] is not None else ())


def door_address(parts: ApiParts, scope: Mapping[str, Any]) -> str:
    """Where the door is found: at the root of its own port where it was asked there, else below its prefix."""
    settings, server = parts.settings, scope.get("server")
    if settings.vng.port and server and server[1] == settings.vng.port and not settings.server.public_url:
        host = settings.server.host
        return f"http://[{host}]:{server[1]}" if ":" in host else f"http://{host}:{server[1]}"
    return f"{settings.hub_url}/vng"
