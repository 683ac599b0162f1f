"""`Http` over httpx: for proxies, compressed answers, client certificates, and whatever else an `httpx.AsyncClient` is given.

About a third slower than `PlainHttp`, which is why it is not the usual one (docs/decisions/010-httpx.md).
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager

import httpx

from tidings.client.feeds.connection import CONNECT, trusted, untrusted
from tidings.client.feeds.http import REDIRECTS, Answer


class HttpxHttp:
    """Http over a client of your own, or over one that obeys the environment: HTTPS_PROXY, NO_PROXY, SSL_CERT_FILE."""

    def __init__(self, client: httpx.AsyncClient | None = None) -> None:
        self._client = client if client is not None else _usual()

    @asynccontextmanager
    async def get(self, url: str, headers: Mapping[str, str], silence: float) -> AsyncIterator[Answer]:
        with _as_os_errors(url):
            response = await self._answered(url, headers, silence)
        try:
            yield Answer(response.status_code, response.headers, _chunks(response, url))
        finally:
            await response.aclose()

    async def close(self) -> None:
        await self._client.aclose()

    async def _answered(self, url: str, headers: Mapping[str, str], silence: float) -> httpx.Response:
        timeout = httpx.Timeout(silence, connect=min(silence, CONNECT))
        while True:
            connection = _Connection()
            request = self._client.build_request(
                "GET", url, headers=dict(headers), timeout=timeout, extensions={"trace": connection.traced}
            )
            try:
                return await self._client.send(request, stream=True, follow_redirects=True)
            except (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError):
                if connection.is_new:
                    raise


class _Connection:
    """Tells whether the last request went over a new connection.

    A server may close a kept connection in the moment that we use it. That says nothing about the request, so it is
    asked again, and in the end over a new connection.
    """

    def __init__(self) -> None:
        self.is_new = False

    async def traced(self, event: str, info: Mapping[str, object]) -> None:
        if event == "connection.connect_tcp.started":
            self.is_new = True
        elif event == "http11.receive_response_headers.complete":
            self.is_new = False  # a redirect may use it again


async def _chunks(response: httpx.Response, url: str) -> AsyncIterator[bytes]:
    with _as_os_errors(url):
        async for piece in response.aiter_bytes():
            yield piece


def _usual() -> httpx.AsyncClient:
    # Every partition may have a request that waits, so the number of connections has no bound.
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    return httpx.AsyncClient(
        verify=trusted(), limits=limits, max_redirects=REDIRECTS, headers={"user-agent": "tidings-feed", "accept": "*/*"}
    )


@contextmanager
def _as_os_errors(url: str) -> Iterator[None]:
    """What the port promises: trouble on the way is an OSError, a certificate that nobody trusts a Misconfigured."""
    try:
        yield
    except httpx.TooManyRedirects as error:
        raise OSError("it redirects without end") from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, ssl.SSLCertVerificationError):
                raise untrusted(httpx.URL(url).netloc.decode("ascii"), cause) from error
            cause = cause.__cause__ or cause.__context__
        raise OSError(str(error) or type(error).__name__) from error
