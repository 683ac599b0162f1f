"""One HTTP/1.1 connection over asyncio, for GET: just what answers of feeds need.

A library that works in threads of its own could end a short program with a crash: they may still hold Python when it ends.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, Self
from urllib.parse import urlsplit

from tidings.errors import Misconfigured

_LIMIT = 1 << 16
CONNECT = 30.0
"""Seconds that connecting may take."""

_HEAD_LINES = 200
_MOVED = (301, 302, 303, 307, 308)


@cache
def trusted() -> ssl.SSLContext:
    """The certificates that the system trusts, read once."""
    return ssl.create_default_context()


def untrusted(server: str, error: ssl.SSLCertVerificationError) -> Misconfigured:
    """Trying again would not help."""
    return Misconfigured(
        f"the certificate of {server} is not trusted: {error.verify_message}",
        expected="one that the system trusts, or its file in SSL_CERT_FILE",
    )


class HttpOrigin(NamedTuple):
    """A server."""

    secure: bool
    host: str
    port: int

    @property
    def host_header(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.secure else 80) else f"{host}:{self.port}"


def origin_of(url: str) -> HttpOrigin:
    """The server in an address. Raises OSError when there is none: it may have come from a redirect."""
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError as error:
        raise OSError(str(error)) from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise OSError(f"there is no server in {url[:80]}")
    return HttpOrigin(parts.scheme == "https", parts.hostname, port or (443 if parts.scheme == "https" else 80))


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """The beginning of an answer; names in lower case."""

    status: int
    headers: Mapping[str, str]
    keeps: bool

    @property
    def redirect(self) -> str | None:
        """Where to ask instead."""
        return self.headers.get("location") if self.status in _MOVED else None

    @property
    def is_chunked(self) -> bool:
        return self.headers.get("transfer-encoding", "").lower().endswith("chunked")

    @property
    def length(self) -> int | None:
        """Bytes of the body, where they are told. None: it ends with the connection."""
        if self.status in (204, 304):
            return 0
        text = self.headers.get("content-length", "")
        return int(text) if text.isascii() and text.isdigit() else None


class HttpConnection:
    """One exchange after the other. Whatever goes wrong is an OSError, and the connection is of no further use."""

    def __init__(self, origin: HttpOrigin, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._origin, self._reader, self._writer = origin, reader, writer
        self.is_reusable = False

    @classmethod
    async def to(cls, origin: HttpOrigin) -> Self:
        context = trusted() if origin.secure else None
        try:
            async with asyncio.timeout(CONNECT):
                return cls(origin, *await asyncio.open_connection(origin.host, origin.port, ssl=context, limit=_LIMIT))
        except ssl.SSLCertVerificationError as error:
            raise untrusted(origin.host_header, error) from error

    async def ask(self, target: str, headers: Mapping[str, str], silence: float) -> ResponseHead:
        """Send a request and read how its answer begins."""
        self.is_reusable = False
        usual = {"user-agent": "tidings-feed", "accept": "*/*", "accept-encoding": "identity"}
        sent = {"host": self._origin.host_header, **usual, **headers}
        if any("\r" in text or "\n" in text for text in (target, *sent.keys(), *sent.values())):
            raise OSError("a line break cannot be sent")
        lines = [f"GET {target} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items()), "", ""]
        self._writer.write("\r\n".join(lines).encode("latin-1", "replace"))
        await self._writer.drain()
        while (head := await self._head(silence)).status < 200:
            pass
        return head

    async def chunks(self, head: ResponseHead, silence: float) -> AsyncIterator[bytes]:
        """The body, piece by piece. Raises OSError when it is cut off."""
        if head.is_chunked:
            async for piece in self._chunked(silence):
                yield piece
        elif head.length is not None:
            async for piece in self._exactly(head.length, silence):
                yield piece
        else:
            while piece := await self._read(_LIMIT, silence):
                yield piece
            return
        self.is_reusable = head.keeps

    def close(self) -> None:
        """Let go of it."""
        self.is_reusable = False
        self._writer.close()

    async def _head(self, silence: float) -> ResponseHead:
        first = (await self._line(silence)).split(b" ", 2)
        if len(first) < 2 or not first[0].startswith(b"HTTP/1.") or not first[1].isdigit():
            raise OSError("what answers there speaks no HTTP/1.1")
        headers: dict[str, str] = {}
        for _ in range(_HEAD_LINES):
            line = await self._line(silence)
            if not line:
                break
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.strip().lower()] = value.strip()
        else:
            raise OSError("the answer has too many headers")
        said = headers.get("connection", "").lower()
        return ResponseHead(int(first[1]), headers, said != "close" if first[0] == b"HTTP/1.1" else said == "keep-alive")

    async def _chunked(self, silence: float) -> AsyncIterator[bytes]:
        while True:
            text = (await self._line(silence)).partition(b";")[0].strip()
            try:
                size = int(text, 16)
            except ValueError as error:
                raise OSError("a chunk of the answer has no length") from error
            if not size:
                break
            async for piece in self._exactly(size, silence):
                yield piece
            await self._line(silence)
        while await self._line(silence):
            pass

    async def _exactly(self, size: int, silence: float) -> AsyncIterator[bytes]:
        while size:
            piece = await self._read(min(size, _LIMIT), silence)
            if not piece:
                raise OSError("the connection ended in the middle of the answer")
            size -= len(piece)
            yield piece

    async def _line(self, silence: float) -> bytes:
        try:
            async with asyncio.timeout(silence):
                return (await self._reader.readuntil(b"\n")).rstrip(b"\r\n")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            raise OSError("the connection ended, or speaks no HTTP/1.1") from error

    async def _read(self, most: int, silence: float) -> bytes:
        async with asyncio.timeout(silence):
            return await self._reader.read(most)
