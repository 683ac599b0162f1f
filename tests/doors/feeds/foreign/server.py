"""The foreign FastAPI handler over events from a file, as an oracle for statuses and lines. Needs `zeroeventhub`."""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from zeroeventhub import Cursor, ZeroEventHubFastApiHandler


class Events:
    """The events of every partition, each with its cursor and headers, and where the feed ends."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._partitions: list[list[tuple[int, dict[str, str], Any]]] = document["partitions"]
        self._end: int = document["end"]

    def get_data(self, cursors: Sequence[Cursor], headers: Sequence[str] | None, page_size: int | None) -> Iterator[Any]:
        for cursor in cursors:
            after = {"_first": 0, "_last": self._end}.get(cursor.cursor)
            position = int(cursor.cursor) if after is None else after
            rest = [one for one in self._partitions[cursor.partition_id] if one[0] > position]
            page = rest[: page_size or 100]
            for _, offered, data in page:
                line: dict[str, Any] = {"partition": cursor.partition_id}
                if headers:
                    line["headers"] = {name: offered[name] for name in headers if name in offered}
                yield {**line, "data": data}
            reached = page[-1][0] if len(page) < len(rest) else max(position, self._end)
            yield {"partition": cursor.partition_id, "cursor": str(reached)}


def app_over(document: dict[str, Any]) -> FastAPI:
    app = FastAPI()
    handler = ZeroEventHubFastApiHandler(Events(document), len(document["partitions"]))

    @app.get("/feed")
    async def feed(request: Request) -> Any:
        return handler.handle(request)

    return app


if __name__ == "__main__":
    uvicorn.run(app_over(json.loads(Path(sys.argv[1]).read_text())), port=int(sys.argv[2]), log_level="error")
