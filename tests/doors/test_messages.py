"""Refusals at every door are written for people: every operation is asked for with bad queries, bodies and members."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.api_process import ApiProcess, an_api
from tests.doors.horizon.worlds import Door, a_rover, a_specification, an_entry, exposing
from tests.hub import Answer
from tests.messages import machine_words
from tests.openapi import operations

VALUES: list[Any] = [None, True, 7, -1, 1.5, 1e9, "x", "9" * 60, [], [None], {}, {"x": 1}]
RAW = [b"", b"{", b'{"a":1,}', b"\xff", b"[1 2]", b"NaN", b"9" * 5000, b'"a', b"{}x", b"[" * 300, b'{"a":1,"a":2}']
QUERIES = ["", "x", "-1", "9" * 60]
SNAKE = re.compile(r"^[a-z]+_[a-z_]+|\.[a-z]+_[a-z_]+")


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    folder: Path = tmp_path_factory.mktemp("api")
    with an_api(folder) as running:
        assert running.call("PUT", "/api/topics/orders", {}).status < 300
        wanted = {"topics": ["orders"], "delivery": {"kind": "push", "url": "http://127.0.0.1:9/"}}
        assert running.call("PUT", "/api/subscriptions/orders", wanted).status < 300
        Door(running).applied(exposing(), a_specification(), a_rover("bill", subscriptions=[an_entry()]))
        yield running


def told(answer: Answer) -> Iterator[str]:
    """Every sentence of a refusal, with the place where one is told apart."""
    problem = json.loads(answer.body)
    yield str(problem["detail"])
    for one in problem.get("errors") or ():
        yield f"{one.get('attribute')}: {one['detail']}"
    for one in problem.get("violations") or ():
        yield f"{one['path']}: {one['reason']}"


def check(answer: Answer, asked: str) -> None:
    assert answer.status < 500, (asked, answer.body)
    if answer.status < 400:
        return
    for sentence in told(answer):
        assert machine_words(sentence) is None, f"{asked}: {sentence}"
        assert not SNAKE.search(sentence.partition(": ")[0]), f"{asked}: a place that this API does not have in {sentence}"


def addresses(api: ApiProcess, door: str) -> Iterator[tuple[str, str, Mapping[str, Any], Mapping[str, Any]]]:
    """Method, address, description and schemas of each operation of a door that answers at once."""
    described = api.call("GET", f"{door}/openapi.json").json
    for path, method in operations(described):
        address = re.sub(r"\{[^}]*\}", "orders", path if path.startswith(door) else door + path)
        if not re.search(r"/stream|/sse", address):
            yield method.upper(), address, described["paths"][path][method], described.get("components", {}).get("schemas", {})


@pytest.mark.parametrize("door", ["/api", "/horizon"])
def test_a_bad_query_is_refused_in_words(api: ApiProcess, door: str) -> None:
    for method, address, operation, _ in addresses(api, door):
        for parameter in operation.get("parameters", ()):
            for value in QUERIES if parameter["in"] == "query" else ():
                body = {} if method in ("PUT", "POST") else None
                query = {parameter["name"]: value, **({"wait": "0"} if parameter["name"] != "wait" else {})}
                check(api.call(method, address, body, **query), f"{method} {address} {parameter['name']}={value[:5]}")


@pytest.mark.parametrize("door", ["/api", "/horizon"])
def test_a_bad_body_is_refused_in_words(api: ApiProcess, door: str) -> None:
    for method, address, operation, schemas in addresses(api, door):
        for kind, content in operation.get("requestBody", {}).get("content", {}).items():
            schema = content.get("schema", {})
            schema = schemas.get(schema.get("$ref", "").rpartition("/")[2], schema)
            bodies = [*RAW, *VALUES, *({name: value} for name in schema.get("properties", ()) for value in VALUES)]
            for body in bodies:
                sent = body if isinstance(body, bytes) else json.dumps(body).encode()
                check(api.call(method, address, sent, {"content-type": kind}), f"{method} {address} {kind} {sent[:60]!r}")


ENTRY = {"eventType": "orders.v1", "deliveryType": "callback", "callback": "https://shop.example/", "payloadType": "data"}
FILTER = {"eq": {"field": "$.a", "value": 1}}


@pytest.mark.parametrize("value", VALUES, ids=lambda value: json.dumps(value)[:20])
def test_a_bad_member_of_a_document_is_refused_in_words(api: ApiProcess, value: Any) -> None:
    """Each member of documents with each value; and the same in filters, triggers and policies."""
    door = Door(api)
    for name in ("apiVersion", "kind", "metadata", "spec"):
        check(door.apply({**a_rover(), name: value}), name)
        check(door.apply({**a_specification(), name: value}), name)
    for name in ("type", "version", "description", "category", "specification"):
        check(door.apply(a_specification(**{name: value})), name)
    for name in ("zone", "exposures", "subscriptions"):
        check(door.apply(a_rover(**{name: value})), name)
    for name in ("eventType", "visibility", "approval", "scopes", "additionalPublisherIds", "trustedTeams"):
        check(door.apply(exposing(**{"event_type": "orders.v1", **({} if name == "eventType" else {name: value})})), name)
    triggers = [
        {"advancedSelectionFilter": value},
        {"advancedSelectionFilter": {"eq": value}},
        {"advancedSelectionFilter": {"eq": {"field": value, "value": 1}}},
        {"advancedSelectionFilter": {"in": {"field": "$.a", "value": value}}},
        {"advancedSelectionFilter": {"rx": {"field": "$.a", "value": value}}},
        {"selectionFilter": value},
        {"selectionFilter": {"a": value}},
        {"responseFilter": value},
        {"responseFilter": [value]},
        {"responseFilter": ["a"], "responseFilterMode": value},
        {"responseFilter": ["a"], "responseFilterSyntax": value},
    ]
    policies = ("maxRetries", "backoffMs", "backoffMultiplier", "readTimeoutMs", "successStatusCodes", "probeIntervalSeconds")
    more = ("retryableStatusCodes", "redeliveriesPerSecond", "eventRetentionTime", "circuitBreakerOptOut", "scopes", "trigger")
    entries = [{**ENTRY, name: value} for name in (*ENTRY, *more, "deliveryPolicy")]
    entries += [{**ENTRY, "trigger": trigger} for trigger in triggers]
    entries += [{**ENTRY, "deliveryPolicy": {name: value}} for name in policies]
    for entry in entries:
        check(door.apply(a_rover("bad", subscriptions=[entry])), json.dumps(entry))


@pytest.mark.parametrize(
    "text", ["a: [", "a: 1\na: 2", "a: &a [*a]", "\x01", "- 1\n- 2", f"a: {'9' * 5000}", "a: 1e999", "a: !x 1"]
)
def test_bad_yaml_is_refused_in_words(api: ApiProcess, text: str) -> None:
    answer = api.call("POST", "/horizon/rover/v1/playground/apply", text.encode(), {"content-type": "application/yaml"})
    assert answer.status == 400
    check(answer, text[:20])


DIALECTS: dict[str, list[Any]] = {
    "where": ["", "a", "a =", "a = 1e999", f"a = {'9' * 5000}", "a in (", "a like 5", "matches 'a'", "a matches '('", "not"],
    "cloudevents": [[], [5], [{"exact": 5}], [{"exact": {"a": 5}}], [{"sql": "x ="}], [{"no": {}}], {}, "x", None],
    "cesql": ["", "a =", "5", "a = 'x", f"a = {'9' * 5000}", "UNKNOWN(a)", "a IN ()", 5, None],
    "eventbridge": [{}, [], "x", {"a": 1}, {"a": [{"numeric": [">", "x"]}]}, {"a": [{"no": 1}]}, {"a": [{"wildcard": 5}]}],
    "horizon": [
        {},
        {"eq": 5},
        {"no": {}},
        {"and": {}},
        {"eq": {"field": 5, "value": 1}},
        {"rx": {"field": "$.a", "value": "("}},
    ],
    "hermes": [
        {},
        [],
        [5],
        [{"type": "x"}],
        [{"type": "jsonpath", "path": 5}],
        [{"type": "jsonpath", "path": "$[", "matcher": "("}],
    ],
    "vng": [{}, [], 5, {"a": {}}, {"a": None}],
    "nothing": ["x"],
}


@pytest.mark.parametrize(("dialect", "texts"), DIALECTS.items(), ids=DIALECTS)
def test_a_bad_filter_is_refused_in_words(api: ApiProcess, dialect: str, texts: list[Any]) -> None:
    for text in [*texts, *VALUES]:
        asked = {"filter": {"dialect": dialect, "filter": text}, "data": {"a": 1}}
        check(api.call("POST", "/api/filters/test", asked), f"{dialect} {json.dumps(text)[:60]}")
