"""Faults of a body's shape are told in the words of its documents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.api_process import ApiProcess, an_api
from tidings.registry.rules.faults import written

FOREIGN = (
    "Input should",
    "Field required",
    "valid dictionary",
    "valid integer",
    "first_partition_id",
    "relations_as_int",
    "_max",
)


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    with an_api(tmp_path_factory.mktemp("shapes")) as api:
        api.call("PUT", "/api/topics/orders", {"feed": {"firstPartitionId": 0}})
        yield api


@pytest.mark.parametrize(
    ("path", "body", "fault"),
    [
        ("topics/t", {"feed": {"versions": "v3"}}, ("feed.versions", "unknown-value", "expected both, v1 or v2")),
        ("topics/t", {"feed": {"partitions": "x"}}, ("feed.partitions", "wrong-type", "expected a whole number")),
        ("topics/t", {"feed": {"relationsAsInt": 7}}, ("feed.relationsAsInt", "wrong-type", "expected true or false")),
        ("topics/t", {"feed": {"aliases": "/a"}}, ("feed.aliases", "wrong-type", "expected a list")),
        ("topics/t", {"feed": 7}, ("feed", "wrong-type", "expected an object")),
        ("topics/t", [], ("", "wrong-type", "expected an object")),
        ("topics/t", {"feed": {"firstPartitionId": 99_999}}, ("feed.firstPartitionId", "invalid", "99999 is out of bounds")),
        ("topics/orders", {"feed": {"firstPartitionId": 5}}, ("feed.firstPartitionId", "invalid", "it counts when")),
        ("topics/orders", {"feed": {"relationsAsInt": True}}, ("feed.relationsAsInt", "invalid", "firstPartitionId of 1")),
        ("topics/t", {"maxEventBytes": 0}, ("maxEventBytes", "invalid", "out of bounds")),
        ("topics/t", {"keyAttribute": "A"}, ("keyAttribute", "invalid", "a CloudEvents attribute")),
        (
            "subscriptions/s",
            {"topic": "orders", "delivery": {"url": "http://127.0.0.1:9/", "retryFirst": "2s", "retryMax": "1s"}},
            ("delivery.retryFirst", "invalid", "(retryMax)"),
        ),
        (
            "subscriptions/s",
            {"topic": "orders", "delivery": {"credential": {"kind": "no"}}},
            ("delivery.credential", "unknown-value", "kind is no; expected one of basic, token, oauth, gateway"),
        ),
    ],
)
def test_a_fault_says_where_and_what_was_expected(api: ApiProcess, path: str, body: Any, fault: tuple[str, ...]) -> None:
    refused = api.call("PUT", f"/api/{path}", body, {"content-type": "application/json"})
    assert refused.status == 400, refused.body
    told = refused.json["errors"][0]
    assert (told["attribute"], told["code"]) == fault[:2] and fault[2] in told["detail"]
    assert not any(word in refused.body.decode() for word in FOREIGN)


def test_what_is_missing_is_required(api: ApiProcess) -> None:
    refused = api.call("POST", "/api/feeds/orders/partitions", {"count": 2}).json
    assert refused["errors"] == [{"index": 0, "attribute": "method", "code": "missing", "detail": "it is required"}]

    empty = api.call("PUT", "/api/topics/t", b"", {"content-type": "application/json"})
    assert (empty.status, empty.json["detail"]) == (400, "the request needs a body: a JSON object")


def test_names_that_writers_gave_stay_as_they_are() -> None:
    assert written("delivery.retry_waits[3]") == "delivery.retryWaits[3]"
    assert written("delivery.headers.x_my_header.a_b") == "delivery.headers.x_my_header.a_b"
