"""VNG's own OpenAPI document against the door: no 5xx, answers as the schemas say, what breaks them refused (VT-34, VT-35)."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import schemathesis
import yaml
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import GenerationMode, checks
from schemathesis.core.failures import AcceptedNegativeData, FailureGroup

from tests.api_process import ApiProcess, an_api
from tests.doors.vng.worlds import ZAKEN, VngDoor, an_event, consenting
from tests.hub import Answer
from tests.openapi import CHECKS, conforms, operations

DATA = Path(__file__).parents[4] / "shared" / "data" / "vng" / "notifications.patched.yaml"

pytestmark = pytest.mark.skipif(not DATA.exists(), reason="the document is not part of the project")


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(DATA.read_text("utf-8"))
    # The door is asked without tokens here, and references to parameters are put in their place.
    loaded.pop("security", None)
    known = loaded["components"]["parameters"]
    for path, method in operations(loaded):
        operation = loaded["paths"][path][method]
        operation.pop("security", None)
        given = operation.get("parameters", [])
        operation["parameters"] = [known[one["$ref"].rpartition("/")[2]] if "$ref" in one else one for one in given]
    return loaded


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    """Domains without filterAttributes take every attribute here, so that made-up events are taken too."""
    vng = {"handshake": "warn", "undeclared_attributes": True, "domain_write": True}
    with an_api(tmp_path_factory.mktemp("api"), vng=vng) as running:
        yield running


def about(document: Mapping[str, Any], domain: str, sink: str) -> dict[str, Any]:
    """The document with this domain and this sink, which nobody could make up."""
    found = copy.deepcopy(dict(document))
    schemas = found["components"]["schemas"]
    schemas["Event"]["properties"]["domain"] = {"enum": [domain]}
    fields = schemas["SubscriptionFields"]["properties"]
    fields["sink"], fields["domain"] = {"enum": [sink]}, {"enum": [domain, None], "nullable": True}
    return found


def test_vt35_made_up_requests(api: ApiProcess, document: dict[str, Any]) -> None:
    door, url = VngDoor(api), f"http://127.0.0.1:{api.port}/vng"
    with consenting() as sink:
        uuids = [door.domain(ZAKEN)["uuid"], door.subscribed(sink.url)["id"]]
        conforms(about(document, ZAKEN, sink.url), url, {"uuid": uuids}, 40)


def test_vt35_what_breaks_the_schemas_is_refused(api: ApiProcess, document: dict[str, Any]) -> None:
    door = VngDoor(api)
    door.domain("nl.vng.negatief")
    with consenting() as sink:
        made = about(document, "nl.vng.negatief", sink.url)
        schema = schemathesis.openapi.from_dict(made)
        schema.config.update(base_url=f"http://127.0.0.1:{api.port}/vng")
        for path, method in operations(made):
            if (path, method) in ACCEPTED_ANYWAY or "requestBody" not in made["paths"][path][method]:
                continue
            refused(schema[path][method.upper()].as_strategy(GenerationMode.NEGATIVE), body_of(made, path, method))


ACCEPTED_ANYWAY = {("/subscriptions/{uuid}", "put"), ("/subscriptions/{uuid}", "patch")}
"""Without a subscription of that id nothing else is looked at."""


READ_ONLY = ("url", "uuid", "id")
"""Members that are ignored where they are sent (VNG-40)."""


def refused(requests: Any, body: Any) -> None:
    """Whatever breaks the document is refused; but null stands for a member left out (VNG-62)."""

    @seed(35)
    @settings(
        max_examples=60,
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=requests)
    def run(case: Any) -> None:
        try:
            case.call_and_validate(checks=[*CHECKS, checks.negative_data_rejection], timeout=120)
        except FailureGroup as found:
            taken = [one for one in found.exceptions if isinstance(one, AcceptedNegativeData)]
            if len(taken) < len(found.exceptions) or not is_lenient(case.body, body):
                raise

    run()


def is_lenient(sent: Any, body: Any) -> bool:
    """Whether a body is as the document wants it, but for members that are null and those that nobody looks at."""
    if not isinstance(sent, dict):
        return False
    return bool(body.is_valid({name: value for name, value in sent.items() if value is not None and name not in READ_ONLY}))


def body_of(document: Mapping[str, Any], path: str, method: str) -> Any:
    """What the body of a request has to be."""
    ((_, content),) = list(document["paths"][path][method]["requestBody"]["content"].items())[:1]
    draft = {"$schema": "http://json-schema.org/draft-07/schema#"}
    return jsonschema_rs.validator_for({**draft, "allOf": [content["schema"]], "components": document["components"]})


def schema_of(document: Mapping[str, Any], name: str) -> Any:
    return jsonschema_rs.validator_for(
        {"$schema": "http://json-schema.org/draft-07/schema#", "$ref": f"#/components/schemas/{name}", **document}
    )


def test_vt34_every_refusal_has_the_shape_of_the_document(api: ApiProcess, document: dict[str, Any]) -> None:
    door = VngDoor(api)
    answers: list[Answer] = [
        door.publish(b"{"),
        door.publish({}),
        door.publish(an_event(domain="nergens")),
        door.publish(an_event(), "text/plain"),
        door.publish(b" " * 100_000),
        door.publish(an_event(), accept="text/html"),
        door.call("GET", "/events"),
        door.call("GET", "/domains?page=0"),
        door.call("GET", "/domains/x"),
        door.call("POST", "/subscriptions", {"filters": [{}]}),
        door.call("DELETE", "/subscriptions/x"),
        door.call("GET", "/domains", headers={"host": "elders.example"}),
    ]
    error, validation = schema_of(document, "Error"), schema_of(document, "ValidationError")
    for answer in answers:
        assert answer.status >= 400
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.headers["api-version"] == "0.1.5"
        (validation if answer.status == 400 else error).validate(answer.json)
        assert all(answer.json[member] for member in ("type", "code", "title", "detail", "instance"))
        assert (answer.status == 400) is bool(answer.json.get("invalidParams"))
