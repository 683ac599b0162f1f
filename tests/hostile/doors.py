"""`python -m tests.hostile.doors`: an api, and hostile bodies to every operation that takes one. Ends at the first odd answer."""

from __future__ import annotations

import re
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.api_process import ApiProcess, an_api
from tests.hostile import texts
from tests.hostile.child import MEMORY, SECONDS
from tests.openapi import operations

BODIES = (
    "40000 lists, open",
    "400000 objects",
    "40000 both",
    "numbers",
    "members",
    "one member again",
    "a long number",
    "infinity",
)
YAML = ("tag directives", "aliases of aliases", "one wide list of aliases", "one long text by alias", "100 kB of indented maps")
REFUSED = {400, 404, 409, 413, 415}


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with tempfile.TemporaryDirectory() as folder, an_api(Path(folder)) as api:
        for topic in ("orders", "orders.v1"):
            assert api.call("PUT", f"/api/topics/{topic}", {}).status < 300
        for method, path, kind in requests(api):
            for name in (*BODIES, *(YAML if "yaml" in kind else ())):
                print(f"{method} {path} {kind}: {name}", flush=True)
                body, began = texts.YAML[name]().encode(), time.process_time()
                answer = api.call(method, path, body, {"content-type": kind})
                took = time.process_time() - began
                assert answer.status in REFUSED or (answer.status < 300 and path.endswith("/events")), (
                    answer.status,
                    answer.body,
                )
                assert took < SECONDS, f"{took:.1f} s of CPU time"
                print(f"    {took:.3f} s, {answer.status}", flush=True)


def requests(api: ApiProcess) -> Iterator[tuple[str, str, str]]:
    """Every operation with a body: method, address and content type."""
    for door in ("/api", "/horizon", "/cloudevents"):
        described = api.call("GET", f"{door}/openapi.json").json
        for path, method in operations(described):
            kinds = described["paths"][path][method].get("requestBody", {}).get("content", {})
            for kind in kinds:
                address = path if path.startswith(door) else door + path
                yield method.upper(), re.sub(r"\{[^}]*\}", "orders", address), kind
    yield "POST", "/horizon/v1/playground/events", "application/json"
    yield from (("POST", f"/vng/{path}", "application/json") for path in ("events", "domains", "subscriptions"))


if __name__ == "__main__":
    main()
