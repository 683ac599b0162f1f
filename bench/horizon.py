"""Publishing through the Horizon door beside the native one: the same event: what a request costs in CPU, the log left out."""

from __future__ import annotations

import json
import tempfile
import time
import uuid
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import uvloop

from bench.figures import Figure
from bench.publish import EVENT, TOPIC, NoLog
from tidings import config
from tidings.app import Api, build_api
from tidings.doors.registry_changes import put
from tidings.observe.part_status import PartStatus
from tidings.registry.model import Name, Topic

ENVIRONMENT, EVENT_TYPE = "bench", "orders.v1"
CALLS, ROUNDS = 3000, 8
DOCUMENTS = [
    {
        "apiVersion": "tcp.ei.telekom.de/v1",
        "kind": "Rover",
        "metadata": {"name": "bench"},
        "spec": {"zone": "caas", "exposures": [{"eventType": EVENT_TYPE}]},
    },
    {
        "apiVersion": "tcp.ei.telekom.de/v1",
        "kind": "EventSpecification",
        "metadata": {"name": "orders-v1"},
        "spec": {"type": EVENT_TYPE, "version": "1.0.0", "description": "bench"},
    },
]

Headers = Sequence[tuple[bytes, bytes]]


def figures() -> list[Figure]:
    """CPU of one publish in each door, from request to draft, the log left out. The best of several rounds, in turn."""
    best = uvloop.run(_measured())
    return [
        Figure("publish, native door, CPU of one request", best["native"], "µs"),
        Figure(
            "publish, Horizon door, CPU of one request",
            best["horizon"],
            "µs",
            "the native door's rate",
            best["native"] / best["horizon"],
            "≥ 0.8",
        ),
    ]


async def _measured() -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder:
        settings = config.load(environ={}, flags={"data": folder})
        async with AsyncExitStack() as stack:
            api = await build_api(settings, PartStatus(Path(folder) / "run", "api"), stack)
            await put(api.parts, [Topic(name=Name("default", TOPIC))], "bench")
            documents = json.dumps(DOCUMENTS).encode()
            await _call(api, f"/horizon/rover/v1/{ENVIRONMENT}/apply", documents, _headers(b"application/json"), 200)
            return await _rounds(api)


async def _rounds(api: Api) -> dict[str, float]:
    log: Any = NoLog()
    bare = Api(replace(api.parts, log=log, intake=replace(api.parts.intake, log=log)))
    event = {**json.loads(EVENT % (1, 1, 1)), "id": str(uuid.uuid4()), "type": EVENT_TYPE}
    ways = {
        "native": (f"/api/topics/{TOPIC}/events", EVENT % (1, 1, 1), _headers(b"application/cloudevents+json"), 202),
        "horizon": (
            f"/horizon/v1/{ENVIRONMENT}/events",
            json.dumps(event, separators=(",", ":")).encode(),
            _headers(b"application/json"),
            201,
        ),
    }
    best: dict[str, float] = {}
    for _ in range(ROUNDS):
        for name, (path, body, headers, status) in ways.items():
            await _call(bare, path, body, headers, status)
            began = time.process_time()
            for _ in range(CALLS):
                await _call(bare, path, body, headers, status)
            took = (time.process_time() - began) / CALLS * 1e6
            best[name] = min(best.get(name, took), took)
    return best


def _headers(content_type: bytes) -> Headers:
    return [(b"host", b"localhost"), (b"content-type", content_type), (b"user-agent", b"bench"), (b"accept", b"*/*")]


async def _call(app: Any, path: str, body: bytes, headers: Headers, status: int) -> None:
    answered = 0

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        nonlocal answered
        answered = message.get("status", answered)

    scope = {"type": "http", "method": "POST", "path": path, "headers": headers, "query_string": b"", "root_path": ""}
    await app({**scope, "scheme": "http", "server": ("localhost", 1), "http_version": "1.1"}, receive, send)
    if answered != status:
        raise RuntimeError(f"{path} was answered with {answered}: the figures would mean nothing")


if __name__ == "__main__":
    from bench.figures import table

    print(table(figures()))
