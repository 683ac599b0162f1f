"""The door keeps what its OpenAPI document promises, whatever is sent: no 5xx, no undocumented answer."""

from __future__ import annotations

from pathlib import Path

from tests.api_process import ApiProcess
from tests.doors.cloudevents.worlds import CONSENT, a_door
from tests.hub import free_port
from tests.openapi import conforms, operations
from tests.receivers import Receiver

EXAMPLES = 15


def test_every_answer_is_one_that_the_document_promises(tmp_path: Path) -> None:
    port = free_port()
    with a_door(tmp_path, cloudevents={"port": port}) as door, Receiver([CONSENT]) as sink:
        ids = [door.create(sink.url, config={"topic": "orders"}).json["id"] for _ in range(2)]
        known = {"topic": ["orders"], "id": ids, "sink": [sink.url], "secret": ["x" * 30]}
        document = ApiProcess(port, tmp_path).call("GET", "/openapi.json").json
        conforms(document, f"http://127.0.0.1:{port}", known, EXAMPLES)


def test_the_document_tells_where_its_paths_stand(tmp_path: Path) -> None:
    port = free_port()
    with a_door(tmp_path, cloudevents={"port": port}) as door:
        alone = ApiProcess(port, tmp_path)
        own, common = alone.call("GET", "/openapi.json").json, door.call("GET", "/openapi.json").json
        assert "servers" not in own and list(operations(own)) == list(operations(common))
        assert common["servers"] == [{"url": "/cloudevents"}]
        assert alone.call("GET", "/subscriptions").status == door.call("GET", "/subscriptions").status == 200
        assert alone.call("GET", "/cloudevents/subscriptions").status == 200, "addresses of the common port hold too"
        with Receiver([CONSENT]) as sink:
            made = alone.call("POST", "/subscriptions", {"sink": sink.url, "protocol": "HTTP"})
        assert made.headers["location"] == f"/subscriptions/{made.json['id']}"
        assert alone.call("GET", made.headers["location"]).status == 200
