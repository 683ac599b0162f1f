"""The feed client beside a bare loop that reads and decodes the same pages, from a canned server in a process of its own."""

from __future__ import annotations

import asyncio
import http.client
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from bench.figures import Figure
from tidings.client.feeds import Batch, FeedClient, Http, HttpxHttp, MemoryStore, SqliteStore

PAGE = 1000
PAGES = 60
DISCOVERY = b'{"token":"t","partitions":[{"id":"0"}],"exactlyOnce":true}'


class _Enough(Exception):
    pass


def figures(pages: int = PAGES, turns: int = 4) -> list[Figure]:
    """Events a second of each, in turns, the best of them; the reader of ours decodes every event too."""
    with _server() as port, tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder:
        bare = ours = saved = over_httpx = 0.0
        for turn in range(turns):
            bare = max(bare, _rate(lambda: _bare(port, pages), pages))
            ours = max(ours, _rate(lambda: _ours(port, pages, MemoryStore()), pages))
            over_httpx = max(over_httpx, _rate(lambda: _ours(port, pages, MemoryStore(), HttpxHttp()), pages))
            store = SqliteStore(Path(folder) / f"{turn}.db")
            saved = max(saved, _rate(lambda: _ours(port, pages, store), pages))  # noqa: B023
            store.close()
    against = "bare HTTP read and JSON decode"
    return [
        Figure("bare HTTP read and JSON decode, pages of 1,000", bare, "events/s"),
        Figure("feed client, cursors in memory", ours, "events/s", against, ours / bare, "≥ 0.5"),
        Figure(
            "feed client over httpx, cursors in memory", over_httpx, "events/s", "feed client over asyncio", over_httpx / ours
        ),
        Figure("feed client, cursors in SQLite", saved, "events/s", against, saved / bare),
    ]


def _rate(act: Callable[[], None], pages: int) -> float:
    began = time.perf_counter()
    act()
    return pages * PAGE / (time.perf_counter() - began)


def _bare(port: int, pages: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    decoder, events = msgspec.json.Decoder(), 0
    for _ in range(pages):
        connection.request("GET", "/feed/events?token=t&partition=0&cursor=_first")
        for line in connection.getresponse().read().split(b"\n"):
            if line and "data" in decoder.decode(line):
                events += 1
    connection.close()
    assert events == pages * PAGE


def _ours(port: int, pages: int, store: Any, http: Http | None = None) -> None:
    events = 0

    def take(tx: Any, batch: Batch) -> None:
        nonlocal events
        for event in batch:
            if event.data["type"]:
                events += 1
        if events >= pages * PAGE:
            raise _Enough

    async def go() -> None:
        async with FeedClient(f"http://127.0.0.1:{port}/feed", store=store, page_size=PAGE, http=http) as client:
            await client.run(take)

    try:
        asyncio.run(go())
    except _Enough:
        pass


def canned_page() -> bytes:
    """1,000 events of about 320 bytes, a checkpoint after every 100."""
    lines = []
    for n in range(PAGE):
        event = {"specversion": "1.0", "id": f"event-{n:08}", "source": "/shop/orders", "type": "order.created"}
        event |= {"subject": f"order-{n % 50}", "time": "2026-01-01T00:00:00Z", "datacontenttype": "application/json"}
        data = {
            "order": n,
            "customer": "c" * 24,
            "lines": [{"sku": "a-1", "count": 2}, {"sku": "b-2", "count": 1}],
            "total": 9.5,
        }
        lines.append(json.dumps({"data": {**event, "data": data}}, separators=(",", ":")))
        if n % 100 == 99:
            lines.append(json.dumps({"cursor": str(n)}))
    return "\n".join(lines).encode() + b"\n"


async def serve() -> None:
    """The canned server; prints its port."""
    page = canned_page()
    answers = [b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body) for body in (DISCOVERY, page)]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(answers[b"/events" in head.split(b"\r\n", 1)[0]])
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextmanager
def _server() -> Iterator[int]:
    process = subprocess.Popen([sys.executable, "-m", "bench.feeds_client"], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()


if __name__ == "__main__":
    asyncio.run(serve())
