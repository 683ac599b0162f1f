"""The Hermes door keeps what its OpenAPI document promises, whatever is sent: no 5xx, no undocumented answer."""

from __future__ import annotations

from pathlib import Path

from tests.api_process import ApiProcess, an_api
from tests.doors.hermes.worlds import HermesDoor
from tests.hub import free_port
from tests.openapi import conforms, operations

EXAMPLES = 8


def test_every_answer_is_one_that_the_document_promises(tmp_path: Path) -> None:
    port = free_port()
    with an_api(tmp_path, hermes={"port": port, "topic_removal": True}) as api:
        door = HermesDoor(api)
        door.topic("shop.orders")
        door.topic("shop.carts")
        door.subscribe("mail")
        provider = {"name": "iris", "tokenEndpoint": "https://iris.example", "clientId": "a", "clientSecret": "b"}
        door.made("/oauth/providers", provider)
        message = door.sent("shop.orders", {"n": 1})
        known = {
            "topic": ["shop.orders", "shop.carts"],
            "name": ["mail", "iris"],
            "group": ["shop"],
            "message": [message],
            "source": ["Plaintext"],
            "id": ["My Team", "1"],
            "version": [],
        }
        document = ApiProcess(port, tmp_path).call("GET", "/openapi.json").json
        conforms(document, f"http://127.0.0.1:{port}", known, EXAMPLES)


def test_the_document_tells_where_its_paths_stand(tmp_path: Path) -> None:
    port = free_port()
    with an_api(tmp_path, hermes={"port": port}) as api:
        own = ApiProcess(port, tmp_path).call("GET", "/openapi.json").json
        common = api.call("GET", "/hermes/openapi.json").json
        assert "servers" not in own and list(operations(own)) == list(operations(common))
        assert common["servers"] == [{"url": "/hermes"}]
        assert "post" in common["paths"]["/topics/{topic}"]
        for path, method in operations(common):
            if method == "get" and "{" not in path:
                assert api.call("GET", "/hermes" + path).status == ApiProcess(port, tmp_path).call("GET", path).status == 200
