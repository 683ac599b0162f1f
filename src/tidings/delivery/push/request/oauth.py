"""Asking for tokens (HER-130…135, SUB-15): what is sent, what counts as an answer, and how often it may be asked. Pure."""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from urllib.parse import urlencode, urlsplit, urlunsplit

import msgspec

from tidings.delivery.push.egress.exchange import ExchangeRequest, Reply

FORM = "application/x-www-form-urlencoded"
OK = 200
TOO_MANY, OWN_TROUBLE = 429, 500
REFRESH_TIMEOUT = 10.0
LONGEST_LIFE = 10 * 365 * 86400.0


class Grant(msgspec.Struct, frozen=True):
    """One way to ask for a token: where, with which parameters. They hold secrets: never log one."""

    url: str
    parameters: Mapping[str, str]
    in_query: bool = False
    timeout: float = REFRESH_TIMEOUT
    silence: float = math.inf

    def __repr__(self) -> str:
        return "Grant(***)"


class Issued(msgspec.Struct, frozen=True):
    """A token that was given. `life` in seconds, None: not said. `refresh`: what to ask with next time, where it changed."""

    token: str
    life: float | None = None
    refresh: str = ""

    def __repr__(self) -> str:
        return "Issued(***)"


class NotIssued(msgspec.Struct, frozen=True):
    """No token, and why in a word. `troubled`: the provider itself is in trouble, whoever asks."""

    reason: str
    troubled: bool = False


def asking(grant: Grant) -> Generator[ExchangeRequest, Reply, Issued | NotIssued]:
    """The protocol: one request with all parameters (HER-132); only a 200 with an access_token counts (HER-133)."""
    reply = yield _request(grant)
    if reply.status != OK:
        return NotIssued(reply.reason, reply.status is None or reply.status == TOO_MANY or reply.status >= OWN_TROUBLE)
    return _issued(reply.body) or NotIssued("no-token")


class TokenPace(msgspec.Struct, frozen=True):
    """When the next token may be asked for: the delay doubles from request to request until the endpoint is content (HER-135)."""

    due: float = 0.0
    delay: float = 0.0

    def asked(self, now: float, first: float, longest: float) -> TokenPace:
        """After a request at `now` (monotonic seconds)."""
        delay = min(max(first, 2 * self.delay), max(first, longest))
        return TokenPace(now + delay, delay)


def client_credentials(client_id: str, client_secret: str, scope: str = "") -> dict[str, str]:
    """The parameters of the grant client_credentials."""
    return _given(grant_type="client_credentials", client_id=client_id, client_secret=client_secret, scope=scope)


def password(client_id: str, client_secret: str, user: str, secret: str, scope: str = "") -> dict[str, str]:
    """The parameters of the grant password."""
    client = {"client_id": client_id, "client_secret": client_secret}
    return _given(grant_type="password", **client, scope=scope, username=user, password=secret)


def refresh(token: str) -> dict[str, str]:
    """The parameters of the grant refresh_token."""
    return _given(grant_type="refresh_token", refresh_token=token)


def _given(**parameters: str) -> dict[str, str]:
    return {name: value for name, value in parameters.items() if value}


def _request(grant: Grant) -> ExchangeRequest:
    form = urlencode(grant.parameters)
    headers = {"accept": "application/json"}
    if not grant.in_query:
        return ExchangeRequest(
            method="POST",
            url=grant.url,
            headers={**headers, "content-type": FORM},
            body=form.encode(),
            timeout=grant.timeout,
            silence=grant.silence,
        )
    parts = urlsplit(grant.url)
    query = f"{parts.query}&{form}" if parts.query else form
    url = urlunsplit(parts._replace(query=query))
    return ExchangeRequest(method="POST", url=url, headers=headers, timeout=grant.timeout, silence=grant.silence)


class _Answer(msgspec.Struct):
    access_token: str
    expires_in: float | str | None = None
    refresh_token: str | None = None


def _issued(body: bytes) -> Issued | None:
    try:
        answer = msgspec.json.decode(body, type=_Answer)
        life = None if answer.expires_in is None else float(answer.expires_in)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    # A token goes into a header: what cannot stand there is none.
    if not answer.access_token.isascii() or not answer.access_token.isprintable() or " " in answer.access_token:
        return None
    if not answer.access_token or (life is not None and not 0 <= life <= LONGEST_LIFE):
        return None
    return Issued(answer.access_token, life, answer.refresh_token or "")
