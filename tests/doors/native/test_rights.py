from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api_process import ApiProcess, an_api
from tests.hub import Answer
from tidings.access.authentication import token_digest

TO = "http://127.0.0.1:9/in"
RIGHTS = {
    "shop": ["publish"],
    "billing": ["subscribe", "read"],
    "crm": ["subscribe"],
    "prometheus": ["metrics"],
    "boss": ["admin"],
}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    tokens = [{"name": name, "sha256": token_digest(name), "rights": rights} for name, rights in RIGHTS.items()]
    tokens.append(
        {"name": "narrow", "sha256": token_digest("narrow"), "rights": ["publish", "read", "subscribe"], "topics": ["a*"]}
    )
    with an_api(tmp_path_factory.mktemp("rights"), access={"mode": "tokens", "tokens": tokens}) as api:
        for topic in ("orders", "audits"):
            assert asks(api, "boss", "PUT", f"/api/topics/{topic}", {}).status == 201
        assert asks(api, "billing", "PUT", "/api/subscriptions/invoices", {"topic": "orders", "to": TO}).status == 201
        yield api


def asks(api: ApiProcess, who: str, method: str, path: str, body: Any = None) -> Answer:
    return api.call(method, path, body, {"authorization": f"Bearer {who}"})


def test_without_a_token_nobody_gets_anything_but_health(api: ApiProcess) -> None:
    for method, path in (
        ("GET", "/api/topics"),
        ("POST", "/api/topics/orders/events"),
        ("GET", "/metrics"),
        ("GET", "/api/status"),
    ):
        answer = api.call(method, path, {} if method == "POST" else None)
        assert (answer.status, answer.json["code"]) == (401, "unauthenticated")
        assert answer.headers["www-authenticate"].startswith("Bearer")
    assert api.call("GET", "/health/live").status == 200
    assert api.call("GET", "/health/ready").status == 503


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/topics"),
        ("POST", "/api/topics/orders/events"),
        ("GET", "/feeds/orders"),
        ("POST", "/horizon/v1/play/events"),
        ("GET", "/horizon/v1/play/sse/" + "0" * 40),
        ("GET", "/horizon/api/v1/circuit-breakers"),
    ],
)
def test_a_wrong_token_is_counted_at_every_door_and_leaves_a_line_without_it(
    api: ApiProcess, caplog: pytest.LogCaptureFixture, method: str, path: str
) -> None:
    before = refused_tokens(api)
    assert asks(api, "gu3ss", method, path, {} if method == "POST" else None).status == 401
    assert refused_tokens(api) == before + 1
    assert "gu3ss" not in caplog.text


def refused_tokens(api: ApiProcess) -> int:
    lines = asks(api, "boss", "GET", "/metrics").body.decode().splitlines()
    return next((int(float(line.split()[1])) for line in lines if line.startswith("tidings_tokens_refused_total ")), 0)


@pytest.mark.parametrize(
    ("who", "method", "path", "body", "status"),
    [
        ("shop", "POST", "/api/topics/orders/events", {}, 202),
        ("billing", "POST", "/api/topics/orders/events", {}, 403),
        ("boss", "POST", "/api/topics/orders/events", {}, 202),
        ("narrow", "POST", "/api/topics/audits/events", {}, 202),
        ("narrow", "POST", "/api/topics/orders/events", {}, 403),
        ("billing", "GET", "/api/topics/orders/events", None, 200),
        ("shop", "GET", "/api/topics/orders/events", None, 403),
        ("narrow", "GET", "/api/topics/orders/events", None, 404),
        ("shop", "PUT", "/api/topics/new", {}, 403),
        ("shop", "DELETE", "/api/topics/orders", None, 403),
        ("shop", "GET", "/api/topics/orders", None, 200),
        ("shop", "PUT", "/api/subscriptions/mine", {"topic": "orders", "to": TO}, 403),
        ("narrow", "PUT", "/api/subscriptions/mine", {"topic": "orders", "to": TO}, 403),
        ("narrow", "PUT", "/api/subscriptions/mine", {"namespace": "default", "to": TO}, 403),
        ("narrow", "PUT", "/api/subscriptions/mine", {"topic": "audits", "to": TO}, 201),
        ("crm", "PUT", "/api/subscriptions/theirs", {"topic": "orders", "to": TO, "owner": "boss"}, 403),
        ("boss", "PUT", "/api/subscriptions/given", {"topic": "orders", "to": TO, "owner": "crm"}, 201),
        ("crm", "GET", "/api/subscriptions/given", None, 200),
        ("crm", "GET", "/api/subscriptions/invoices", None, 404),
        ("crm", "DELETE", "/api/subscriptions/invoices", None, 404),
        ("crm", "GET", "/api/subscriptions/invoices/state", None, 404),
        ("crm", "PUT", "/api/subscriptions/invoices/state", {"state": "suspended"}, 404),
        ("crm", "POST", "/api/subscriptions/invoices/rewind", {"to": "_first"}, 404),
        ("crm", "GET", "/api/subscriptions/invoices/dead-letters", None, 404),
        ("crm", "PUT", "/api/subscriptions/invoices", {"topic": "orders", "to": TO}, 403),
        ("boss", "GET", "/api/subscriptions/invoices", None, 200),
        ("crm", "PUT", "/api/exposures/orders", {}, 403),
        ("crm", "GET", "/api/changes", None, 403),
        ("boss", "GET", "/api/changes", None, 200),
        ("crm", "POST", "/api/filters/test", {"where": "a = 1", "data": {}}, 200),
        ("shop", "POST", "/api/filters/test", {"where": "a = 1", "data": {}}, 403),
        ("crm", "POST", "/api/apply", {"topics": {"new": {}}}, 403),
        ("crm", "POST", "/api/apply", {"subscriptions": [{"name": "invoices", "topic": "orders", "to": TO}]}, 403),
        ("crm", "POST", "/api/apply", {"subscriptions": [{"name": "own", "topic": "orders", "to": TO}]}, 200),
        ("shop", "GET", "/metrics", None, 403),
        ("billing", "GET", "/metrics", None, 403),
        ("narrow", "GET", "/metrics", None, 403),
        ("prometheus", "GET", "/metrics", None, 200),
        ("prometheus", "GET", "/api/topics/orders", None, 404),
        ("prometheus", "GET", "/api/topics/orders/events", None, 404),
        ("boss", "GET", "/metrics", None, 200),
    ],
)
def test_rights_decide(api: ApiProcess, who: str, method: str, path: str, body: Any, status: int) -> None:
    assert asks(api, who, method, path, body).status == status


def test_everybody_sees_only_what_is_theirs(api: ApiProcess) -> None:
    assert [one["name"] for one in asks(api, "narrow", "GET", "/api/topics").json["topics"]] == ["audits"]
    mine = [one["name"] for one in asks(api, "billing", "GET", "/api/subscriptions").json["subscriptions"]]
    assert mine == ["invoices"]
    assert [one["name"] for one in asks(api, "billing", "GET", "/api/status").json["subscriptions"]] == ["invoices"]


def test_pruning_takes_only_the_callers_own_subscriptions(api: ApiProcess) -> None:
    asks(api, "crm", "PUT", "/api/subscriptions/passing", {"topic": "orders", "to": TO})
    asks(api, "crm", "POST", "/api/apply", {"subscriptions": [], "prune": True})
    assert asks(api, "crm", "GET", "/api/subscriptions").json == {"subscriptions": []}
    assert asks(api, "billing", "GET", "/api/subscriptions/invoices").status == 200


def test_changes_name_who_made_them(api: ApiProcess) -> None:
    changes = asks(api, "boss", "GET", "/api/changes").json["changes"]
    assert {"boss", "billing"} <= {change["by"] for change in changes}


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/api/topics/orders/events"), ("POST", "/api/apply"), ("GET", "/api/topics")]
)
def test_with_open_access_a_page_from_elsewhere_gets_nothing(tmp_path: Path, method: str, path: str) -> None:
    with an_api(tmp_path) as api:
        api.call("PUT", "/api/topics/orders", {})
        body = {} if method == "POST" else None
        assert api.call(method, path, body, {"origin": "https://evil.example"}).status == 403
        assert api.call(method, path, body, {"host": "evil.example"}).status == 403
        assert api.call(method, path, body, {"origin": "http://localhost:3000"}).status in (200, 202)


@pytest.mark.parametrize(
    "path",
    [
        "/api/subscriptions/invoices/stream",
        "/feeds/orders?n=1&cursor0=_first&cursorset=a",
        "/horizon/v1/play/sse/" + "0" * 40,
        "/horizon/api/v1/circuit-breakers",
        "/api/topics",
    ],
)
def test_with_open_access_what_a_page_from_elsewhere_embeds_or_links_to_is_refused_at_every_door(
    tmp_path: Path, path: str
) -> None:
    with an_api(tmp_path) as api:
        api.call("PUT", "/api/topics/orders", {})
        refused = api.call("GET", path, headers={"sec-fetch-site": "cross-site"})
        assert (refused.status, "pages from elsewhere" in refused.json["detail"]) == (403, True)
        assert api.call("GET", "/api/topics", headers={"sec-fetch-site": "same-origin"}).status == 200


def test_with_tokens_a_page_from_elsewhere_may_ask(api: ApiProcess) -> None:
    headers = {"authorization": "Bearer shop", "origin": "https://shop.example", "host": "hub.example"}
    assert api.call("POST", "/api/topics/orders/events", {}, headers).status == 202
