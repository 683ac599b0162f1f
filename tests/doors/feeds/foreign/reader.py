"""Reads a feed with the foreign client as its documentation says, and prints what it got as JSON. Needs `zeroeventhub`."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import httpx
from zeroeventhub import Client, Cursor, PageEventReceiver, receive_events


async def read(url: str, n: int, partitions: list[int], hint: int | None, headers: list[str] | None) -> dict[str, Any]:
    """Page by page until a page has no event."""
    events: list[Any] = []
    async with httpx.AsyncClient(timeout=30) as http:
        client = Client(url, n, http)
        cursors = [Cursor(p, "_first") for p in partitions]
        while True:
            receiver = PageEventReceiver()
            try:
                await receive_events(receiver, client.fetch_events(cursors, hint, headers))
            except httpx.HTTPStatusError as error:
                return {"status": error.response.status_code}
            events += [[one.partition_id, one.headers, one.data] for one in receiver.events]
            if not receiver.events:
                return {"events": events, "cursors": {c.partition_id: c.cursor for c in receiver.latest_checkpoints}}
            cursors = list(receiver.latest_checkpoints)


if __name__ == "__main__":
    print(json.dumps(asyncio.run(read(*json.loads(sys.argv[1])))))
