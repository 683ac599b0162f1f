"""What can be evaluated and is hardly meant so is told to whoever puts or tries it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.api_process import an_api

LIST = {"dialect": "horizon", "filter": {"eq": {"field": "$.a", "value": 1}, "ne": {"field": "$.a", "value": 2}}}
IGNORED = "filter.ne: is ignored: only the first operator of an object counts"
DOLLAR = "project.include[0]: dotted paths begin with a member's name"

WANTED: dict[str, Any] = {"topic": "orders", "filter": LIST, "project": {"include": ["$.a"]}, "delivery": {"kind": "pull"}}


def test_a_subscription_that_is_put_is_answered_with_warnings_which_are_not_kept(tmp_path: Path) -> None:
    with an_api(tmp_path) as api:
        api.call("PUT", "/api/topics/orders", {})
        put = api.call("PUT", "/api/subscriptions/odd", WANTED)
        assert put.status == 201, put.body
        ignored, dollar = put.json["warnings"]
        assert ignored == IGNORED
        assert dollar.startswith(DOLLAR)
        assert "warnings" not in api.call("GET", "/api/subscriptions/odd").json
        plain = api.call("PUT", "/api/subscriptions/plain", {"topic": "orders", "delivery": {"kind": "pull"}})
        assert "warnings" not in plain.json


def test_scopes_of_an_exposure_are_warned_of_with_their_name(tmp_path: Path) -> None:
    with an_api(tmp_path) as api:
        api.call("PUT", "/api/topics/orders", {})
        put = api.call("PUT", "/api/exposures/orders", {"scopes": {"eu": {"filter": LIST}}})
        assert put.json["warnings"] == [f"scopes.eu.{IGNORED}"]
        again = api.call("PUT", "/api/exposures/orders", put.json)
        assert again.status == 200, "what was answered can be put back"


def test_an_apply_warns_of_what_it_would_change_and_of_what_it_changes(tmp_path: Path) -> None:
    document = {"topics": {"orders": {}}, "subscriptions": [{"name": "odd", **WANTED}]}
    with an_api(tmp_path) as api:
        planned = api.call("POST", "/api/apply?dryRun=true", document).json["warnings"]
        assert planned[0] == f"subscription odd: {IGNORED}"
        assert api.call("POST", "/api/apply", document).json["warnings"] == planned
        assert api.call("POST", "/api/apply", document).json["warnings"] is None


def test_trying_a_filter_tells_them_too(tmp_path: Path) -> None:
    with an_api(tmp_path) as api:
        tried = api.call("POST", "/api/filters/test", {"filter": LIST, "data": {"a": 1}}).json
        assert (tried["matches"], tried["warnings"]) == (True, [IGNORED.removeprefix("filter.")])
        assert api.call("POST", "/api/filters/test", {"where": "a = 1", "data": {"a": 1}}).json["warnings"] is None


def test_an_expression_that_runs_out_of_time_says_so(tmp_path: Path) -> None:
    with an_api(tmp_path, regex={"fallback": "true", "match_timeout": "20ms"}) as api:
        tried = api.call("POST", "/api/filters/test", {"where": "n matches '(?=a)(a+)+$'", "data": {"n": "a" * 5000 + "!"}})
        assert tried.json["matches"] is False
        assert "given up after 20 ms" in tried.json["because"][0]["cause"]
        assert "given up after 20 ms" in tried.json["text"]


def test_an_apply_warns_of_callbacks_that_may_not_be_reached(tmp_path: Path) -> None:
    document = {"topics": {"orders": {}}, "subscriptions": [{"name": "far", "topic": "orders", "to": "https://10.0.0.5/in"}]}
    failing = "every delivery will fail with ssrf-blocked until push.allow names it"
    told = f"subscription far: callbacks may not go to 10.0.0.5: {failing}"
    with an_api(tmp_path) as api:
        assert api.call("POST", "/api/apply?dryRun=true", document).json["warnings"] == [told]
        assert api.call("POST", "/api/apply", document).json["warnings"] == [told]


def test_a_callback_at_an_address_of_the_hub_itself_is_warned_of(tmp_path: Path) -> None:
    with an_api(tmp_path) as api:
        api.call("PUT", "/api/topics/orders", {})
        for host in ("127.0.0.1", "localhost", "[::1]"):
            to = f"http://{host}:{api.port}/api/topics/orders/events"
            put = api.call("PUT", "/api/subscriptions/round", {"topic": "orders", "to": to})
            assert put.status in (200, 201)
            assert any("is an address of this hub itself" in warning for warning in put.json["warnings"])
        document = {"subscriptions": [{"name": "round2", "topic": "orders", "to": to}]}
        assert "is an address of this hub itself" in api.call("POST", "/api/apply", document).json["warnings"][0]
        other = api.call("PUT", "/api/subscriptions/other", {"topic": "orders", "to": "http://127.0.0.1:9/in"})
        assert "warnings" not in other.json
