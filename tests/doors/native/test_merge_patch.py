"""PATCH: what is given changes, null is the default again, everything else stays."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.api_process import ApiProcess, an_api
from tidings.doors.requests.merge_patch import merged

TO = "http://127.0.0.1:9/in"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    with an_api(tmp_path_factory.mktemp("patches")) as api:
        for topic in ("orders", "payments"):
            api.call("PUT", f"/api/topics/{topic}", {})
        yield api


@pytest.mark.parametrize(
    ("standing", "patch", "after"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ({"schema": {"a": 1}}, {"schema": {"b": None}}, {"schema": {"b": None}}),
        ({"scopes": {"x": {"a": 1}, "y": {"b": 1}}}, {"scopes": {"x": {"c": 1}}}, {"scopes": {"x": {"c": 1}, "y": {"b": 1}}}),
    ],
)
def test_members_are_merged_as_the_rfc_says_but_wholes_are_replaced(standing: Any, patch: Any, after: Any) -> None:
    assert merged(standing, patch, frozenset({"schema", "scopes.*"})) == after


def test_a_patch_of_a_topic_changes_only_what_it_names(api: ApiProcess) -> None:
    path = "/api/topics/rich"
    made = {
        "description": "words",
        "retention": "1d",
        "duplicates": "forever",
        "keyAttribute": "source",
        "labels": {"a": "1", "b": "2"},
        "schema": {"type": "object"},
        "feed": {"versions": "v2", "aliases": ["/rich/feed"], "v1Data": "payload", "relationsAsInt": True, "partitions": 4},
    }
    before = api.call("PUT", path, made).json
    changed = api.call("PATCH", path, {"retention": "2d", "labels": {"a": None, "c": "3"}, "feed": {"versions": "both"}})
    assert changed.status == 200
    assert changed.json == before | {
        "retention": 172_800,
        "labels": {"b": "2", "c": "3"},
        "feed": before["feed"] | {"versions": "both"},
    }
    assert api.call("GET", "/feeds/rich").json["exactlyOnce"] is True
    anew = api.call("PATCH", path, {"retention": None, "schema": {"minProperties": 1}, "feed": {"aliases": None}}).json
    assert (anew["retention"], anew["schema"], anew["feed"]["aliases"]) == (None, {"minProperties": 1}, [])


def test_a_patch_creates_what_is_not_there(api: ApiProcess) -> None:
    made = api.call("PATCH", "/api/topics/patched", {"retention": "1h"}, {"content-type": "application/merge-patch+json"})
    assert (made.status, made.json["retention"], made.json["feed"]["partitions"]) == (201, 3600, 1)
    assert api.call("PATCH", "/api/exposures/patched", {"approval": "manual"}).status == 201
    assert api.call("PATCH", "/api/subscriptions/patched", {"topic": "orders", "to": TO}).status == 201
    assert api.call("PATCH", "/api/subscriptions/nothing", {"topic": "orders"}).status == 400
    assert api.call("PATCH", "/api/subscriptions/nothing/policy", {"rate": 5}).status == 404


@pytest.mark.parametrize(
    ("patch", "place"),
    [
        ({"retentoin": None}, "retention"),
        ({"feed": {"alias": None}}, "aliases"),
        ({"feed": {"versions": "v3"}}, "feed.versions"),
        ({"name": "other"}, "name"),
        (["retention"], ""),
    ],
)
def test_a_wrong_patch_is_refused_with_its_place(api: ApiProcess, patch: Any, place: str) -> None:
    refused = api.call("PATCH", "/api/topics/orders", patch)
    assert refused.status == 400 and place in refused.body.decode()


def test_a_patch_of_a_subscription_changes_only_what_it_names(api: ApiProcess) -> None:
    path = "/api/subscriptions/rich"
    delivery = {
        "url": TO,
        "mode": "binary",
        "headers": {"X-Token": "secret", "X-Plain": "1"},
        "rate": 5,
        "answers": {"404": "give-up"},
        "signing": "v1",
        "credential": {"kind": "basic", "user": "u", "password": "p"},
    }
    made = {"topics": ["orders"], "where": "total > 5", "project": {"include": ["total"]}, "labels": {"a": "1"}}
    assert api.call("PUT", path, {**made, "delivery": delivery, "retention": "1d", "description": "words"}).status == 201
    before = api.call("GET", path).json
    patch = {"topic": "payments", "delivery": {"tries": 3, "answers": {"410": "give-up"}}}
    assert api.call("PATCH", path, patch).status == 200
    after = api.call("GET", path).json
    assert after == before | {
        "topics": ["payments"],
        "delivery": before["delivery"] | {"tries": 3, "answers": {"404": "give-up", "410": "give-up"}},
    }
    filter = {"dialect": "eventbridge", "filter": {"a": ["b"]}}
    replaced = api.call("PATCH", path, {"filter": filter, "project": {"exclude": ["x"]}}).json
    assert (replaced["where"], replaced["project"]["exclude"], replaced["project"].get("include")) == (None, ["x"], None)


def test_another_address_needs_secrets_again_and_another_kind_starts_afresh(api: ApiProcess) -> None:
    path = "/api/subscriptions/moved"
    made = {"topic": "orders", "where": "total > 5", "delivery": {"url": TO, "headers": {"X-Token": "secret"}, "rate": 5}}
    assert api.call("PUT", path, made).status == 201
    refused = api.call("PATCH", path, {"to": f"{TO}2"})
    assert refused.status == 400 and "a new address needs the value again" in refused.json["detail"]
    moved = api.call("PATCH", path, {"delivery": {"url": f"{TO}2", "headers": {"X-Token": None}}}).json
    assert (moved["delivery"]["url"], moved["delivery"]["rate"], moved["delivery"]["headers"]) == (f"{TO}2", 5, {})
    streamed = api.call("PATCH", path, {"delivery": {"kind": "sse"}}).json
    assert (streamed["delivery"]["kind"], streamed["delivery"]["url"], streamed["where"]) == ("sse", None, "total > 5")
    known = api.call("PATCH", path, {"to": "http://user:word@127.0.0.1:9/in"}).json
    assert known["delivery"]["credential"]["user"] == "user"
    again = api.call("PATCH", path, {"to": "http://other:word@127.0.0.1:9/in"}).json
    assert again["delivery"]["credential"]["user"] == "other"


def test_a_patch_of_a_policy_keeps_what_was_wished_for(api: ApiProcess) -> None:
    made = {"topic": "orders", "delivery": {"url": TO, "preset": "hermes", "rate": 5, "answers": {"404": "give-up"}}}
    api.call("PUT", "/api/subscriptions/paced", made)
    changed = api.call("PATCH", "/api/subscriptions/paced/policy", {"preset": "vng", "answers": {"410": "retry"}}).json[
        "wished"
    ]
    assert (changed["preset"], changed["rate"], changed["answers"]) == ("vng", 5, {"404": "give-up", "410": "retry"})
    assert api.call("PATCH", "/api/subscriptions/paced/policy", {"rate": None}).json["wished"]["rate"] is None


def test_a_patch_of_an_exposure_keeps_its_other_scopes(api: ApiProcess) -> None:
    scopes = {"eu": {"where": 'region = "EU"'}, "us": {"where": 'region = "US"'}}
    api.call("PUT", "/api/exposures/payments", {"publishers": ["shop"], "scopes": scopes})
    changed = api.call("PATCH", "/api/exposures/payments", {"scopes": {"eu": {"project": {"include": ["a"]}}}}).json
    assert changed["publishers"] == ["shop"] and changed["scopes"]["us"]["where"] == 'region = "US"'
    assert changed["scopes"]["eu"]["where"] is None and changed["scopes"]["eu"]["project"]["include"] == ["a"]
    assert api.call("PATCH", "/api/exposures/payments", {"scopes": {"us": None}}).json["scopes"].keys() == {"eu"}


def test_a_patch_of_a_provider_keeps_its_secret(api: ApiProcess) -> None:
    made = {"tokenEndpoint": "http://127.0.0.1:9/token", "clientId": "hub", "clientSecret": "s3cret", "firstDelay": "5s"}
    assert api.call("PUT", "/api/providers/login", made).status == 201
    changed = api.call("PATCH", "/api/providers/login", {"requestTimeout": "3s"})
    assert (changed.status, changed.json["firstDelay"], changed.json["requestTimeout"]) == (200, 5, 3)
    assert api.call("PATCH", "/api/providers/login", {"tokenEndpoint": "http://127.0.0.1:9/other"}).status == 400


def test_patches_at_the_same_time_lose_nothing(api: ApiProcess) -> None:
    """Each either holds or is refused as a conflict; none undoes another that was answered with 200."""
    api.call("PUT", "/api/topics/busy", {})
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda n: api.call("PATCH", "/api/topics/busy", {"labels": {f"l{n}": "x"}}).status, range(24)))
    assert set(answers) <= {200, 409} and 200 in answers
    assert len(api.call("GET", "/api/topics/busy").json["labels"]) == answers.count(200)


def test_only_who_may_put_may_patch(tmp_path: Path) -> None:
    from tidings.access.authentication import token_digest

    tokens = [
        {"name": "ops", "sha256": token_digest("ops"), "rights": ["admin"]},
        {"name": "ann", "sha256": token_digest("ann"), "rights": ["subscribe"]},
        {"name": "bob", "sha256": token_digest("bob"), "rights": ["subscribe"]},
    ]
    with an_api(tmp_path, access={"mode": "tokens", "tokens": tokens}) as api:
        ops, ann, bob = ({"authorization": f"Bearer {name}"} for name in ("ops", "ann", "bob"))
        assert api.call("PUT", "/api/topics/orders", {}, ops).status == 201
        for path in ("/api/topics/orders", "/api/exposures/orders", "/api/providers/login"):
            assert api.call("PATCH", path, {}, ann).status == 403
        body = {"topic": "orders", "delivery": {"kind": "pull"}}
        assert api.call("PATCH", "/api/subscriptions/mine", body, ann).status == 201
        assert api.call("PATCH", "/api/subscriptions/mine", {"description": "x"}, bob).status == 403
        assert api.call("PATCH", "/api/subscriptions/mine", {"owner": "bob"}, ann).status == 403
        changed = api.call("PATCH", "/api/subscriptions/mine", {"description": "x"}, ops).json
        assert (changed["owner"], changed["description"]) == ("ann", "x")
