from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.api_process import ApiProcess, an_api


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    with an_api(tmp_path_factory.mktemp("topics")) as api:
        yield api


def test_a_topic_is_created_replaced_listed_and_deleted(api: ApiProcess) -> None:
    assert api.call("PUT", "/api/topics/orders", {"retention": "2d", "maxEventBytes": "1KiB"}).status == 201
    replaced = api.call("PUT", "/api/topics/orders", {"retention": 60, "labels": {"team": "shop"}})
    assert (replaced.status, replaced.json["retention"], replaced.json["maxEventBytes"]) == (200, 60, None)
    assert api.call("GET", "/api/topics/orders").json == replaced.json
    assert replaced.json in api.call("GET", "/api/topics").json["topics"]
    assert api.call("DELETE", "/api/topics/orders").status == 204
    assert api.call("GET", "/api/topics/orders").status == 404


def test_what_was_read_can_be_put_back(api: ApiProcess) -> None:
    api.call("PUT", "/api/topics/round", {"schema": {"type": "object"}, "duplicates": "24h", "keyAttribute": "customer"})
    shown = api.call("GET", "/api/topics/round").json
    again = api.call("PUT", "/api/topics/round", shown)
    assert (again.status, again.json) == (200, shown)


def test_a_name_may_hold_a_namespace_with_slashes(api: ApiProcess) -> None:
    assert api.call("PUT", "/api/topics/shops%2Fprod:orders", {}).status == 201
    assert api.call("GET", "/api/topics/shops/prod:orders").json["name"] == "shops/prod:orders"


@pytest.mark.parametrize(
    ("body", "attribute", "words"),
    [
        ({"retentoin": "2d"}, "", "did you mean retention?"),
        ({"retention": "soon"}, "retention", "duration"),
        ({"retention": 0}, "retention", ""),
        ({"maxEventBytes": "many"}, "maxEventBytes", "size"),
        ({"duplicates": "sometimes"}, "duplicates", "24h"),
        ({"schema": {"type": "nothing"}}, "schema", "JSON Schema"),
        ({"schema": []}, "schema", ""),
        ({"labels": {"a": 1}}, "labels.a", ""),
    ],
)
def test_a_bad_topic_is_refused_with_the_place_and_the_reason(
    api: ApiProcess, body: object, attribute: str, words: str
) -> None:
    answer = api.call("PUT", "/api/topics/bad", body)
    assert (answer.status, answer.json["code"]) == (400, "invalid-document")
    assert answer.json["errors"][0]["attribute"] == attribute
    assert words in answer.json["errors"][0]["detail"]
    assert api.call("GET", "/api/topics/bad").status == 404


def test_a_body_that_names_something_else_is_refused(api: ApiProcess) -> None:
    assert api.call("PUT", "/api/topics/one", {"name": "two"}).status == 400


def test_broken_json_is_refused(api: ApiProcess) -> None:
    answer = api.call("PUT", "/api/topics/one", b'{"retention": ')
    assert (answer.status, answer.headers["content-type"]) == (400, "application/problem+json")


def test_a_body_of_another_type_is_unsupported(api: ApiProcess) -> None:
    answer = api.call("PUT", "/api/topics/one", b"<topic/>", {"content-type": "text/xml"})
    assert (answer.status, answer.json["code"]) == (415, "unsupported-format")


def test_curls_usual_content_type_is_read_as_json(api: ApiProcess) -> None:
    answer = api.call("PUT", "/api/topics/curl", b"{}", {"content-type": "application/x-www-form-urlencoded"})
    assert answer.status == 201


def test_a_management_body_is_bounded(api: ApiProcess) -> None:
    answer = api.call("PUT", "/api/topics/one", b" " * (5 << 20))
    assert (answer.status, answer.json["code"]) == (413, "too-large")


def test_a_topic_that_is_asked_for_is_only_deleted_by_force(api: ApiProcess) -> None:
    api.call("PUT", "/api/topics/wanted", {})
    api.call("PUT", "/api/subscriptions/asking", {"topic": "wanted", "delivery": {"kind": "pull"}})
    refused = api.call("DELETE", "/api/topics/wanted")
    assert (refused.status, refused.json["code"]) == (409, "conflict")
    assert api.call("DELETE", "/api/topics/wanted?force=true").status == 204
    assert api.call("GET", "/api/subscriptions/asking").status == 404


def test_deleting_what_is_not_there_is_not_found(api: ApiProcess) -> None:
    assert api.call("DELETE", "/api/topics/nothing").status == 404
    assert api.call("DELETE", "/api/topics/no%20name").status == 404


def test_unknown_paths_and_methods_are_problems(api: ApiProcess) -> None:
    for method, path, status in (("GET", "/api/nothing", 404), ("POST", "/api/topics/orders", 405), ("GET", "/", 404)):
        answer = api.call(method, path)
        assert (answer.status, answer.headers["content-type"], answer.json["instance"]) == (
            status,
            "application/problem+json",
            path,
        )


def a_schema(*names: str) -> dict[str, object]:
    fields = [{"name": name, "type": "int", "default": 0} for name in names]
    return {"type": "record", "name": "R", "fields": fields}


def test_a_topic_with_avro_payloads_shows_its_newest_schema_and_lists_all(api: ApiProcess) -> None:
    made = api.call("PUT", "/api/topics/avro", {"avro": {"schema": a_schema("a")}})
    assert (made.status, made.json["avro"]) == (201, {"schema": a_schema("a"), "compatibility": "backward", "version": 1})
    assert api.call("PUT", "/api/topics/avro", made.json).json == made.json
    patched = api.call("PATCH", "/api/topics/avro", {"avro": {"schema": a_schema("a", "b")}})
    assert (patched.json["avro"]["version"], patched.json["avro"]["schema"]) == (2, a_schema("a", "b"))
    assert api.call("PATCH", "/api/topics/avro", {"avro": {"compatibility": "full"}}).json["avro"]["version"] == 2
    listed = api.call("GET", "/api/topics/avro/schema-versions").json["versions"]
    assert listed == [{"version": 1, "schema": a_schema("a")}, {"version": 2, "schema": a_schema("a", "b")}]
    assert api.call("GET", "/api/topics/missing/schema-versions").status == 404


@pytest.mark.parametrize(
    ("avro", "attribute", "words"),
    [
        ({"schema": {"type": "record"}}, "avro.schema", "a name is missing"),
        ({"schema": {"type": "record", "name": "R", "fields": [{"name": "b", "type": "int"}]}}, "avro.schema", "no default"),
        ({"schema": "int", "compatibility": "sideways"}, "avro.compatibility", "backward"),
        (None, "avro", "keeps its Avro schemas"),
    ],
)
def test_a_schema_that_cannot_be_is_refused_with_the_reason(api: ApiProcess, avro: object, attribute: str, words: str) -> None:
    api.call("PATCH", "/api/topics/strict", {"avro": {"schema": a_schema("a")}})
    answer = api.call("PUT", "/api/topics/strict", {"avro": avro})
    assert (answer.status, answer.json["errors"][0]["attribute"]) == (400, attribute)
    assert words in answer.json["errors"][0]["detail"]
    assert api.call("GET", "/api/topics/strict").json["avro"]["version"] == 1
