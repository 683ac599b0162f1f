"""Publishing through each door beside the native one: the same event, and what a request costs in CPU, the log left out.

VNG routing and delivery are beside the plain ones: nested filters beside equality, strict order beside none.
"""

from __future__ import annotations

import json
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import uvloop

from bench.figures import Figure
from bench.filters import Measured, in_batches
from bench.publish import EVENT, TOPIC, NoLog
from bench.workloads import workload
from tidings import config
from tidings.app import Api, build_api
from tidings.doors.registry_changes import put
from tidings.filters import parse
from tidings.observe.part_status import PartStatus
from tidings.registry.model import Name, Topic

CALLS, ROUNDS = 3000, 8
SUBSCRIPTIONS = 1_000

ENVIRONMENT, EVENT_TYPE, DOMAIN = "bench", "orders.v1", "nl.vng.bench"
ROVERS = [
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


@dataclass(frozen=True, slots=True)
class Way:
    """How the event is published at one door: the path, what its door wants the event to say, and how it is answered."""

    path: str
    members: Mapping[str, Any]
    content_type: bytes
    status: int


WAYS: Mapping[str, Way] = {
    "native": Way(f"/api/topics/{TOPIC}/events", {}, b"application/cloudevents+json", 202),
    "Horizon": Way(
        f"/horizon/v1/{ENVIRONMENT}/events",
        {"id": str(uuid.UUID(int=1, version=4)), "type": EVENT_TYPE},
        b"application/json",
        201,
    ),
    "CloudEvents": Way(f"/cloudevents/topics/{TOPIC}", {}, b"application/cloudevents+json", 202),
    "CloudEvents, by type": Way("/cloudevents/events", {"type": TOPIC}, b"application/cloudevents+json", 202),
    "VNG": Way("/vng/events", {"domain": DOMAIN, "vertrouwelijkheid": "openbaar"}, b"application/cloudevents+json", 200),
}
AIMS = {"Horizon": "≥ 0.8", "CloudEvents": "≥ 0.95", "CloudEvents, by type": "≥ 0.8", "VNG": "≥ 0.7"}


def figures() -> list[Figure]:
    """CPU of one publish in each door, from request to draft, the best of several rounds, in turn; then VNG's filters."""
    best = uvloop.run(_measured())
    found = [Figure("publish, native door, CPU of one request", best["native"], "µs")]
    for name, aim in AIMS.items():
        ratio = best["native"] / best[name]
        found.append(
            Figure(f"publish, door {name}, CPU of one request", best[name], "µs", "the native door's rate", ratio, aim)
        )
    return [*found, *_routing()]


async def _measured() -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder:
        # The duplicate check needs the log, which is left out; it is off in every door here.
        settings = config.load(environ={}, flags={"data": folder, "vng": {"duplicates": "off"}})
        async with AsyncExitStack() as stack:
            api = await build_api(settings, PartStatus(Path(folder) / "run", "api"), stack)
            await put(api.parts, [Topic(name=Name("default", TOPIC))], "bench")
            domain = {"name": DOMAIN, "filterAttributes": ["vertrouwelijkheid", "bronorganisatie"]}
            made = {f"/horizon/rover/v1/{ENVIRONMENT}/apply": (ROVERS, 200), "/vng/domains": (domain, 201)}
            for path, (body, status) in made.items():
                await _call(api, path, json.dumps(body).encode(), _headers(b"application/json"), status)
            return await _rounds(api)


async def _rounds(api: Api) -> dict[str, float]:
    log: Any = NoLog()
    bare = Api(replace(api.parts, log=log, intake=replace(api.parts.intake, log=log)))
    best: dict[str, float] = {}
    for _ in range(ROUNDS):
        for name, way in WAYS.items():
            event = {**json.loads(EVENT % (1, 1, 1)), **way.members}
            body, headers = json.dumps(event, separators=(",", ":")).encode(), _headers(way.content_type)
            await _call(bare, way.path, body, headers, way.status)
            began = time.process_time()
            for _ in range(CALLS):
                await _call(bare, way.path, body, headers, way.status)
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


def _routing() -> list[Figure]:
    """Subscriptions of the VNG door with nested filters, beside as many with one equality each."""
    events = 10_000
    chosen = workload("equality", SUBSCRIPTIONS, events)
    plain = in_batches(Measured(chosen.filters(), chosen.payloads))
    chance = Random(SUBSCRIPTIONS)
    nested = Measured([parse("vng", _nested(chance)) for _ in range(SUBSCRIPTIONS)], chosen.payloads)
    nested.batch = replace_heads(nested, [_head(chance, n) for n in range(events)])
    us = in_batches(nested)
    name = f"route in batches, nested VNG filters, {SUBSCRIPTIONS:,} subscriptions"
    return [Figure(name, us, "µs/event", "equality", us / plain, "≤ 2")]


def replace_heads(measured: Measured, heads: Sequence[bytes]) -> Any:
    """The same batch with these heads."""
    batch = measured.batch
    return type(batch)(batch.positions, batch.topics, heads, batch.datas)


DOMAINS, WORDS, ORGANIZATIONS = 20, 40, 400


def _nested(chance: Random) -> list[Any]:
    """As the behavior text's own example: types of one domain, or an attribute in another."""
    domain, other = (f"nl.vng.d{chance.randrange(DOMAINS)}" for _ in range(2))
    types = [{"exact": {"type": f"{domain}.t{chance.randrange(WORDS)}"}} for _ in range(2)]
    organization = {"exact": {"domain": other, "Bronorganisatie": str(chance.randrange(ORGANIZATIONS))}}
    return [{"any": [{"all": [{"exact": {"domain": domain}}, {"any": types}]}, organization]}]


def _head(chance: Random, number: int) -> bytes:
    domain = f"nl.vng.d{chance.randrange(DOMAINS)}"
    attributes = {
        "specversion": "1.0",
        "id": f"7c1f-{number}",
        "source": "urn:nld:oin:1:systeem:bench",
        "domain": domain,
        "type": f"{domain}.t{chance.randrange(WORDS)}",
        "datacontenttype": "application/json",
        "bronorganisatie": str(chance.randrange(ORGANIZATIONS)),
    }
    return json.dumps(attributes, separators=(",", ":")).encode()


if __name__ == "__main__":
    from bench.figures import table

    print(table(figures()))
