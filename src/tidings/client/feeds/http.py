"""The one thing a reader asks of HTTP: GET, with the answer as a stream of bytes. `Http` is where your own client fits in."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pyreqwest.client import Client


@dataclass(frozen=True, slots=True)
class Answer:
    """The beginning of an answer; names of headers in lower case. Iterating `chunks` raises OSError when the connection breaks."""

    status: int
    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]


class Http(Protocol):
    """An HTTP client. Raises OSError for whatever lies between it and the server, also when the answer is cut off."""

    def get(self, url: str, headers: Mapping[str, str], silence: float) -> AbstractAsyncContextManager[Answer]:
        """Ask; leaving the context lets go of the connection. `silence` is how long the server may send nothing, in seconds."""

    async def close(self) -> None:
        """Let go of every connection. Called once, at the end."""


class Reqwest:
    """Http over pyreqwest: TLS, proxies and compression come with it, and reading costs little of Python's time."""

    def __init__(self) -> None:
        self._clients: dict[float, Client] = {}

    @asynccontextmanager
    async def get(self, url: str, headers: Mapping[str, str], silence: float) -> AsyncIterator[Answer]:
        from pyreqwest.exceptions import PyreqwestError

        try:
            request = self._client(silence).get(url).headers(dict(headers)).streamed_read_buffer_limit(1 << 20)
            async with request.build_streamed() as response:
                found = {name.lower(): value for name, value in response.headers.items()}
                yield Answer(response.status, found, _chunks(response.body_reader))
        except PyreqwestError as error:
            raise OSError(cause_of(error)) from error

    async def close(self) -> None:
        clients, self._clients = self._clients, {}
        for client in clients.values():
            await client.close()

    def _client(self, silence: float) -> Client:
        if silence not in self._clients:
            # Imported late, so that the library costs nothing before it is used.
            from datetime import timedelta

            from pyreqwest.client import ClientBuilder

            builder = ClientBuilder().user_agent("tidings-feed").connect_timeout(timedelta(seconds=30))
            self._clients[silence] = builder.read_timeout(timedelta(seconds=silence)).build()
        return self._clients[silence]


async def _chunks(reader: object) -> AsyncIterator[bytes]:
    while (chunk := await reader.read(1 << 18)) is not None:  # type: ignore[attr-defined]
        yield bytes(chunk)


def cause_of(error: Exception) -> str:
    """The innermost reason that the library knows."""
    causes = (getattr(error, "details", None) or {}).get("causes") or []
    return str(causes[-1]["message"] if causes else error)
