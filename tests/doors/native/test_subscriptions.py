from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api_process import ApiProcess, an_api

TO = "http://127.0.0.1:9/in"
SCOPES = {
    "eu": {"where": 'region = "EU"', "project": {"include": ["total", "region"]}},
    "default": {"project": {"include": ["region"]}},
}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    with an_api(tmp_path_factory.mktemp("subscriptions")) as api:
        for topic in ("orders", "payments"):
            api.call("PUT", f"/api/topics/{topic}", {})
        api.call("PUT", "/api/topics/scoped", {})
        api.call("PUT", "/api/exposures/scoped", {"scopes": SCOPES})
        yield api


def test_a_short_subscription_becomes_a_whole_one(api: ApiProcess) -> None:
    created = api.call("PUT", "/api/subscriptions/short", {"topic": "orders", "where": "total > 5", "to": TO})
    assert created.status == 201
    assert (created.json["topics"], created.json["where"]) == (["orders"], "total > 5")
    assert (created.json["delivery"]["kind"], created.json["delivery"]["url"]) == ("push", TO)
    assert created.json["owner"] == "anonymous"


@pytest.mark.parametrize(
    "body",
    [
        {"topics": ["orders", "payments"], "to": TO},
        {"namespace": "default", "delivery": {"kind": "pull"}},
        {"topic": "orders", "filter": {"dialect": "cloudevents", "filter": {"exact": {"type": "a"}}}, "to": TO},
        {"topic": "orders", "delivery": {"url": TO, "mode": "binary", "tries": 3, "retryFirst": "2s", "headers": {"x-a": "b"}}},
        {"topic": "orders", "to": TO, "project": {"include": ["total.amount", "items.*.name"]}},
        {"topic": "orders", "to": TO, "project": {"exclude": ["$.items[?(@.v > 1)]"], "syntax": "jsonpath"}},
        {"topic": "scoped", "to": TO, "scopes": ["eu"]},
        {"topic": "orders", "to": TO, "description": "d", "labels": {"a": "b"}, "owner": "somebody"},
    ],
)
def test_what_was_read_can_be_put_back_and_changes_nothing(api: ApiProcess, body: dict[str, Any]) -> None:
    assert api.call("PUT", "/api/subscriptions/round", body).status in (200, 201)
    shown = api.call("GET", "/api/subscriptions/round").json
    revision = api.call("GET", "/api/changes", limit=1000).json["after"]
    wanted = {key: value for key, value in shown.items() if key not in ("created", "approvals")}
    again = api.call("PUT", "/api/subscriptions/round", wanted)
    assert (again.status, again.json) == (200, shown)
    assert api.call("GET", "/api/changes", limit=1000).json["after"] == revision


def test_secret_headers_are_covered_and_kept_when_put_back_covered(api: ApiProcess) -> None:
    secret = {"url": TO, "headers": {"authorization": "Bearer hush", "x-plain": "seen"}}
    stored = api.call("PUT", "/api/subscriptions/secret", {"topic": "orders", "delivery": secret})
    assert stored.json["delivery"]["headers"] == {"authorization": "***", "x-plain": "seen"}
    revision = api.call("GET", "/api/changes", limit=1000).json["after"]
    api.call("PUT", "/api/subscriptions/secret", {"topic": "orders", "delivery": stored.json["delivery"]})
    changes = api.call("GET", "/api/changes", limit=1000)
    assert changes.json["after"] == revision, "the covered value stands for the stored one"
    assert b"hush" not in changes.body


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"to": TO}, 400, "topic, topics, namespace"),
        ({"topic": "orders", "topics": ["orders"], "to": TO}, 400, "exclude each other"),
        ({"topic": "orders"}, 400, "to, delivery"),
        ({"topic": "orders", "to": TO, "delivery": {"kind": "pull"}}, 400, "exclude each other"),
        ({"topic": "orders", "delivery": {"kind": "pull", "url": TO}}, 400, "pull"),
        ({"topic": "orders", "delivery": {}}, 400, "callback"),
        ({"topic": "nowhere", "to": TO}, 400, "there is no topic nowhere"),
        ({"topics": [], "to": TO}, 400, "at least one topic"),
        ({"topic": "orders", "to": "ftp://x"}, 400, "http"),
        ({"topic": "orders", "where": "total >", "to": TO}, 400, "expected"),
        ({"topic": "orders", "filter": {"dialect": "sql", "filter": ""}, "to": TO}, 400, "dialect"),
        ({"topic": "orders", "were": "total > 5", "to": TO}, 400, "did you mean where?"),
        ({"topic": "orders", "delivery": {"url": TO, "retryfirst": 1}}, 400, "did you mean retryFirst?"),
    ],
)
def test_a_bad_subscription_is_refused_with_a_reason(api: ApiProcess, body: dict[str, Any], status: int, words: str) -> None:
    answer = api.call("PUT", "/api/subscriptions/bad", body)
    assert answer.status == status
    assert words in answer.json["detail"]
    assert api.call("GET", "/api/subscriptions/bad").status == 404


def test_a_subscription_is_listed_and_deleted(api: ApiProcess) -> None:
    api.call("PUT", "/api/subscriptions/brief", {"topic": "orders", "to": TO})
    names = [one["name"] for one in api.call("GET", "/api/subscriptions").json["subscriptions"]]
    assert "brief" in names and names == sorted(names)
    assert api.call("DELETE", "/api/subscriptions/brief").status == 204
    assert api.call("GET", "/api/subscriptions/brief").status == 404


def test_manual_approval_is_asked_for_and_given(api: ApiProcess) -> None:
    assert api.call("PUT", "/api/exposures/payments", {"approval": "manual"}).status == 201
    stored = api.call("PUT", "/api/subscriptions/careful", {"topic": "payments", "to": TO})
    assert stored.json["approvals"] == {"payments": "pending"}
    mine = {"subscription": "careful", "topic": "payments", "state": "pending", "reason": ""}
    assert mine in api.call("GET", "/api/approvals").json["approvals"]
    granted = api.call("PUT", "/api/approvals/careful/payments", {"state": "granted", "reason": "fine"})
    assert (granted.status, granted.json["state"]) == (200, "granted")
    assert api.call("GET", "/api/subscriptions/careful").json["approvals"] == {"payments": "granted"}
    assert api.call("PUT", "/api/approvals/careful/orders", {"state": "granted"}).status == 404
    assert api.call("PUT", "/api/approvals/careful/payments", {"state": "perhaps"}).status == 400


def test_an_exposure_is_replaced_and_removed(api: ApiProcess) -> None:
    api.call("PUT", "/api/topics/exposed", {})
    assert api.call("GET", "/api/exposures/exposed").status == 404
    assert api.call("PUT", "/api/exposures/exposed", {"publishers": ["shop"]}).status == 201
    assert api.publish("exposed", {}).status == 403
    assert api.call("PUT", "/api/exposures/exposed", {"publishers": ["shop", "anon*"]}).status == 200
    assert api.publish("exposed", {}).status == 202
    assert api.call("GET", "/api/exposures/exposed").json["publishers"] == ["shop", "anon*"]
    assert "exposed" in [one["topic"] for one in api.call("GET", "/api/exposures").json["exposures"]]
    assert api.call("DELETE", "/api/exposures/exposed").status == 204
    assert api.call("PUT", "/api/exposures/nowhere", {}).status == 400


def test_changes_tell_who_did_what_and_from_which_position(api: ApiProcess) -> None:
    api.call("PUT", "/api/topics/audited", {})
    cursor = api.publish("audited", {}).json["last"]
    api.call("PUT", "/api/topics/audited", {"description": "new"})
    last = [one for one in api.call("GET", "/api/changes", limit=1000).json["changes"] if one["name"] == "audited"][-1]
    assert (last["by"], last["action"], last["kind"], last["cursor"]) == ("anonymous", "update", "topic", cursor)
    assert api.call("GET", "/api/changes", after=last["revision"]).json == {"changes": [], "after": last["revision"]}


@pytest.mark.parametrize(
    ("body", "matches"),
    [
        ({"where": "total > 5", "data": {"total": 6}}, True),
        ({"where": "total > 5", "data": {"total": 5}}, False),
        ({"where": "x is missing", "data": None}, True),
        (
            {
                "filter": {"dialect": "cloudevents", "filter": {"exact": {"type": "a"}}},
                "event": {"specversion": "1.0", "id": "1", "source": "/", "type": "a"},
            },
            True,
        ),
    ],
)
def test_a_filter_can_be_tried(api: ApiProcess, body: dict[str, Any], matches: bool) -> None:
    answer = api.call("POST", "/api/filters/test", body)
    assert (answer.status, answer.json["matches"]) == (200, matches)
    assert answer.json["because"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"where": "total >", "data": {}}, "invalid-filter"),
        ({"where": "total > 5"}, "malformed"),
        ({"data": {}}, "malformed"),
        ({"where": "total > 5", "event": {"id": "1"}}, "invalid-event"),
    ],
)
def test_a_filter_that_cannot_be_tried_says_why(api: ApiProcess, body: dict[str, Any], code: str) -> None:
    answer = api.call("POST", "/api/filters/test", body)
    assert (answer.status, answer.json["code"]) == (400, code)


def members(value: Any) -> Iterator[str]:
    """The names of all members, however deep."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from members(inner)


def test_the_delivery_policy_is_read_and_changed_by_itself(api: ApiProcess) -> None:
    api.call("PUT", "/api/topics/paced", {})
    push = {"url": "http://127.0.0.1:9/in", "preset": "hermes", "rate": 5, "retryWaits": ["1s", "5m"]}
    assert api.call("PUT", "/api/subscriptions/paced", {"topic": "paced", "delivery": push}).status == 201
    policy = api.call("GET", "/api/subscriptions/paced/policy").json
    assert (policy["wished"]["preset"], policy["wished"]["rate"], policy["wished"]["retryWaits"]) == ("hermes", 5, [1, 300])
    assert (policy["inForce"]["pace"]["second"], policy["inForce"]["inflight"]) == (5, 100)
    assert "tries" not in policy["inForce"]["retry"], "only time ends the retrying"
    changed = api.call("PUT", "/api/subscriptions/paced/policy", {"preset": "vng", "tries": 3}).json
    assert (changed["inForce"]["ordering"], changed["inForce"]["retry"]["tries"]) == ("strict", 3)
    assert not [name for name in members(changed["inForce"]) if "_" in name]
    assert {"attemptTimeout", "askedLongest", "byStatus"} <= set(members(changed["inForce"]))
    shown = api.call("GET", "/api/subscriptions/paced").json["delivery"]
    assert (shown["url"], shown["preset"], shown["rate"]) == ("http://127.0.0.1:9/in", "vng", None)


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("preset", "kafka"), ("ordering", "random"), ("answers", {"404": "maybe"}), ("answers", {"4oo": "retry"}),
        ("answers", {"2xx": "give-up"}),
        ("rate", 0), ("retryFactor", 0.5), ("retryWaits", []), ("batchSize", 0), ("inflight", 0),
    ],
)  # fmt: skip
def test_a_policy_that_says_nothing_sensible_is_refused(api: ApiProcess, member: str, value: object) -> None:
    api.call("PUT", "/api/topics/odd", {})
    push = {"url": "http://127.0.0.1:9/in", member: value}
    assert api.call("PUT", "/api/subscriptions/odd", {"topic": "odd", "delivery": push}).status == 400


def test_a_policy_under_which_one_status_is_a_success_is_taken(api: ApiProcess) -> None:
    api.call("PUT", "/api/topics/picky", {})
    push = {"url": "http://127.0.0.1:9/in", "answers": {"2xx": "give-up", "204": "delivered"}}
    assert api.call("PUT", "/api/subscriptions/picky", {"topic": "picky", "delivery": push}).status == 201


@pytest.mark.parametrize(
    ("project", "place"),
    [
        ({}, "project"),
        ({"include": ["a"], "exclude": ["b"]}, "project"),
        ({"include": []}, "projection"),
        ({"include": ["a", ""]}, "paths[1]"),
        ({"include": ["$.a["], "syntax": "jsonpath"}, "paths[0]"),
        ({"include": ["a"], "syntax": "xpath"}, "syntax"),
        ({"includes": ["a"]}, "did you mean include"),
    ],
)
def test_a_projection_that_cannot_be_done_is_refused_with_its_place(api: ApiProcess, project: Any, place: str) -> None:
    refused = api.call("PUT", "/api/subscriptions/parts", {"topic": "orders", "to": TO, "project": project})
    assert refused.status == 400
    assert place in refused.body.decode()


def test_an_exposure_shows_its_scopes_and_takes_them_back_unchanged(api: ApiProcess) -> None:
    shown = api.call("GET", "/api/exposures/scoped").json
    assert list(shown["scopes"]) == ["eu", "default"]
    assert shown["scopes"]["eu"]["where"] == 'region = "EU"'
    assert shown["scopes"]["eu"]["project"]["include"] == ["total", "region"]
    revision = api.call("GET", "/api/changes", limit=1000).json["after"]
    assert api.call("PUT", "/api/exposures/scoped", shown).status == 200
    assert api.call("GET", "/api/changes", limit=1000).json["after"] == revision


def test_a_scope_that_the_topic_does_not_have_is_refused_with_those_it_has(api: ApiProcess) -> None:
    refused = api.call("PUT", "/api/subscriptions/guess", {"topic": "scoped", "to": TO, "scopes": ["europe"]})
    assert refused.status == 400
    assert "it has eu, default" in refused.body.decode()


def test_explaining_tells_nothing_of_what_a_scope_hides(api: ApiProcess) -> None:
    api.call("PUT", "/api/subscriptions/seeing", {"topic": "scoped", "to": TO, "scopes": ["eu"], "where": "secret = 4711"})
    api.call(
        "PUT", "/api/subscriptions/parts", {"topic": "scoped", "to": TO, "scopes": ["eu"], "project": {"exclude": ["total"]}}
    )
    told = {}
    for region in ("EU", "US"):
        answer = api.call("POST", "/api/topics/scoped/explain", {"data": {"region": region, "secret": 4711, "total": 1}})
        told[region] = {one["subscription"]: one for one in answer.json["verdicts"]}
    assert not told["EU"]["seeing"]["gets"], "its filter cannot see the secret"
    assert told["EU"]["parts"]["gets"]
    assert not told["US"]["parts"]["gets"]
    assert "scope" in told["US"]["parts"]["why"]
    assert "tree" not in told["US"]["parts"] or told["US"]["parts"]["tree"] is None


def test_an_avropath_finds_nothing_in_json(api: ApiProcess) -> None:
    api.call("PUT", "/api/topics/plain", {})
    chain = [{"type": "avropath", "path": ".region", "matcher": "EU"}]
    body = {"topic": "plain", "delivery": {"kind": "pull"}, "filter": {"dialect": "hermes", "filter": chain}}
    assert api.call("PUT", "/api/subscriptions/avro", body).status == 201
    for kind, found in (("avropath", False), ("jsonpath", True)):
        tried = [{"type": kind, "path": "$.region" if found else ".region", "matcher": "EU"}]
        asked = {"filter": {"dialect": "hermes", "filter": tried}, "data": {"region": "EU"}}
        assert api.call("POST", "/api/filters/test", asked).json["matches"] is found


def test_a_stream_has_its_kind_and_a_retention_of_its_own(api: ApiProcess) -> None:
    body = {"topic": "orders", "delivery": {"kind": "sse"}, "retention": "1h"}
    assert api.call("PUT", "/api/subscriptions/streamed", body).status == 201
    shown = api.call("GET", "/api/subscriptions/streamed").json
    assert (shown["delivery"]["kind"], shown["retention"]) == ("sse", 3600.0)
    assert api.call("PUT", "/api/subscriptions/streamed", shown | {"created": None, "approvals": None}).status == 400
    again = {name: value for name, value in shown.items() if name not in ("created", "approvals")}
    assert api.call("PUT", "/api/subscriptions/streamed", again).json == shown


def test_a_stream_has_no_address_and_no_retention_is_endless(api: ApiProcess) -> None:
    addressed = {"topic": "orders", "delivery": {"kind": "sse", "url": TO}}
    assert "delivery.url" in api.call("PUT", "/api/subscriptions/bad", addressed).body.decode()
    endless = {"topic": "orders", "delivery": {"kind": "sse"}, "retention": "99999d"}
    assert "out of bounds" in api.call("PUT", "/api/subscriptions/bad", endless).body.decode()


@pytest.mark.parametrize(
    ("url", "warned"),
    [
        ("http://10.1.2.3/in", True),
        ("http://[fe80::1]/in", True),
        ("http://2130706433/in", False),
        ("https://hooks.example/in", False),
    ],
)
def test_an_address_that_callbacks_may_not_reach_is_warned_of_when_it_is_named(tmp_path: Path, url: str, warned: bool) -> None:
    """2130706433 is this machine itself, which a hub on loopback may reach. Names are not looked up (SSRF-11)."""
    with an_api(tmp_path) as api:
        assert api.call("PUT", "/api/topics/orders", {}).status == 201
        answer = api.call("PUT", "/api/subscriptions/billing", {"topic": "orders", "to": url})
        assert answer.status == 201
        told = answer.json.get("warnings") or []
        assert [("ssrf-blocked" in one, "push.allow" in one) for one in told] == ([(True, True)] if warned else [])
        assert api.call("GET", "/api/subscriptions/billing").json.get("warnings") is None
