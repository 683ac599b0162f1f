"""The native API keeps what its OpenAPI document promises, whatever is sent: no 5xx, no undocumented answer."""

from __future__ import annotations

from pathlib import Path

from tests.api_process import CLOUDEVENT
from tests.doors.sse.worlds import streaming
from tests.openapi import conforms

EXAMPLES = 6


def test_every_answer_is_one_that_the_document_promises(tmp_path: Path) -> None:
    with streaming(tmp_path) as world:
        lane = world.subscribe("streamed")
        world.subscribe("pushed", kind="push", url="http://127.0.0.1:9/in")
        (offset,) = world.publish(1, lane)
        assert world.api.publish("orders", CLOUDEVENT, "application/cloudevents+json").status == 202
        document = world.api.call("GET", "/api/openapi.json").json
        known = {
            "name": ["orders", "streamed", "pushed"],
            "topic": ["orders"],
            "subscription": ["streamed", "pushed"],
            "cursor": [f"0-{offset}"],
            "wait": ["0"],
        }
        # A stream does not end by itself.
        del document["paths"]["/api/subscriptions/{name}/stream"]["get"]
        conforms(document, f"http://127.0.0.1:{world.api.port}", known, EXAMPLES)
