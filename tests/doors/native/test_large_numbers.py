"""Numbers that no file of the hub can hold are refused wherever one may be given, in words and as 400."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.api_process import ApiProcess, an_api
from tests.openapi import operations
from tidings.delivery.push.sqlite.writer import SqliteDeliveryStore

HUGE = (1 << 63, -(1 << 63) - 1, 1 << 64, 10**400)
KNOWN = {"name": "billing", "topic": "orders", "subscription": "billing"}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    with an_api(tmp_path_factory.mktemp("numbers")) as api:
        api.call("PUT", "/api/topics/orders", {})
        api.call("PUT", "/api/topics/billing", {})
        api.call("PUT", "/api/subscriptions/billing", {"topic": "orders", "to": "http://127.0.0.1:9/in"})
        SqliteDeliveryStore(api.data).close()
        yield api


class Document:
    """An OpenAPI document, and the values that its schemas allow."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = document

    def resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        while "$ref" in schema:
            found: Any = self.document
            for part in schema["$ref"].removeprefix("#/").split("/"):
                found = found[part]
            schema = found
        return schema

    def least(self, schema: Mapping[str, Any]) -> Any:
        """A value with no more than it must have."""
        schema = self.resolved(schema)
        if "const" in schema or "enum" in schema:
            return schema["const"] if "const" in schema else schema["enum"][0]
        for choice in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
            return self.least(choice)
        simple = {"string": "orders", "integer": 1, "number": 1, "boolean": True, "array": []}
        if schema.get("type") in simple:
            return simple[schema["type"]]
        return {name: self.least(schema["properties"][name]) for name in schema.get("required", ())}

    def with_huge(self, schema: Mapping[str, Any], depth: int = 0) -> Iterator[Any]:
        """Values with one huge number each, at every place that takes one."""
        schema = self.resolved(schema)
        for choice in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
            yield from self.with_huge(choice, depth + 1)
        match schema.get("type"):
            case "integer" | "number":
                yield from HUGE
            case "array":
                yield from ([value] for value in self.with_huge(schema["items"], depth + 1))
            case "object" if depth < 6:
                for name, member in schema.get("properties", {}).items():
                    yield from ({**self.least(schema), name: value} for value in self.with_huge(member, depth + 1))


def requests(document: Document) -> Iterator[tuple[str, str, Any, dict[str, Any]]]:
    """Method, path, body and query of every request with one huge number."""
    for template, method in operations(document.document):
        operation = document.document["paths"][template][method]
        asked = operation.get("parameters", ())
        path = template
        for one in asked:
            path = path.replace(f"{{{one['name']}}}", KNOWN.get(one["name"], "1")) if one["in"] == "path" else path
        for one in asked:
            for huge in document.with_huge(one["schema"]):
                if one["in"] == "query":
                    yield method, path, None, {one["name"]: huge}
                elif one["in"] == "path":
                    yield method, template.replace(f"{{{one['name']}}}", str(huge)).replace("{name}", "billing"), None, {}
        for content in operation.get("requestBody", {}).get("content", {}).values():
            yield from ((method, path, body, {}) for body in document.with_huge(content.get("schema", {})))


def test_no_number_is_too_large_for_an_answer(api: ApiProcess) -> None:
    document = Document(api.call("GET", "/api/openapi.json").json)
    asked = 0
    for method, path, body, query in requests(document):
        answer = api.call(method.upper(), path, body, **query)
        asked += 1
        assert answer.status < 500, (method, path, query, str(body)[:200], answer.body)
    assert asked > 300


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "changes?after=9223372036854775808"),
        ("GET", "subscriptions/billing/dead-letters?after=9223372036854775808"),
        ("GET", "subscriptions/billing/dead-letters/9223372036854775808"),
        ("DELETE", "subscriptions/billing/dead-letters/-9223372036854775809"),
        ("POST", "subscriptions/billing/dead-letters/9223372036854775808/retry"),
    ],
)
def test_a_number_beyond_64_bits_is_refused(api: ApiProcess, method: str, path: str) -> None:
    assert api.call(method, f"/api/{path}").status == 400


@pytest.mark.parametrize("value", [10**30, 10**400, "9" * 400, "9" * 30 + "GiB"])
def test_a_size_or_duration_beyond_all_bounds_is_refused(api: ApiProcess, value: Any) -> None:
    for member in ("retention", "maxEventBytes"):
        assert api.call("PUT", "/api/topics/orders", {member: value}).status == 400
