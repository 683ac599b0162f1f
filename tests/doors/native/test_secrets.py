"""Credentials, providers and signing keys over the native API: written, never read back."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

import jwt
import pytest

from tests.api_process import ApiProcess, an_api

TO = "http://127.0.0.1:9/in"
LOGIN = {"tokenEndpoint": "https://login.example/token", "clientId": "hub", "clientSecret": "hush-client"}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    with an_api(tmp_path_factory.mktemp("secrets")) as api:
        api.call("PUT", "/api/topics/orders", {})
        api.call("PUT", "/api/providers/login", LOGIN)
        yield api


def put(api: ApiProcess, name: str, **delivery: Any) -> Any:
    return api.call("PUT", f"/api/subscriptions/{name}", {"topic": "orders", "delivery": {"url": TO, **delivery}})


def stored(api: ApiProcess) -> str:
    """Everything that the registry's file holds."""
    with sqlite3.connect(api.data / "registry.db") as database:
        rows = database.execute("SELECT document FROM versions UNION ALL SELECT document FROM changes").fetchall()
    return "\n".join(text for (text,) in rows if text)


CREDENTIALS = [
    {"kind": "basic", "user": "u", "password": "hush-1"},
    {"kind": "token", "token": "hush-2", "expires": "2030-01-31T12:00:00Z"},
    {"kind": "token", "token": "hush-3", "refresh": "hush-4", "refreshAt": "https://a.example/", "placement": "query"},
    {"kind": "oauth", "provider": "login", "scope": "a"},
    {"kind": "oauth", "provider": "login", "grant": "password", "user": "u", "password": "hush-5"},
    {"kind": "gateway", "requestPath": "/x", "publisher": "a", "subscriber": "b"},
]


@pytest.mark.parametrize("credential", CREDENTIALS)
def test_a_credential_is_sealed_shown_covered_and_kept_when_put_back(api: ApiProcess, credential: dict[str, str]) -> None:
    created = put(api, "known", credential=credential, headers={"x-any": "hush-6"})
    assert created.status in (200, 201), created.body
    shown = api.call("GET", "/api/subscriptions/known")
    assert shown.json["delivery"]["credential"]["kind"] == credential["kind"]
    assert "hush-" not in shown.body.decode().replace('"x-any":"hush-6"', "")
    revision = api.call("GET", "/api/changes", limit=1000).json["after"]
    wanted = {key: value for key, value in shown.json.items() if key not in ("created", "approvals")}
    again = api.call("PUT", "/api/subscriptions/known", wanted)
    assert (again.status, again.json) == (200, shown.json)
    changes = api.call("GET", "/api/changes", limit=1000)
    assert changes.json["after"] == revision, "nothing has changed"
    assert b"hush-" not in changes.body
    assert "hush-" not in stored(api)


def test_the_same_secret_written_again_changes_nothing(api: ApiProcess) -> None:
    put(api, "same", credential=CREDENTIALS[0], headers={"authorization": "hush"})
    revision = api.call("GET", "/api/changes", limit=1000).json["after"]
    put(api, "same", credential=CREDENTIALS[0], headers={"authorization": "hush"})
    assert api.call("GET", "/api/changes", limit=1000).json["after"] == revision


def test_a_user_in_the_address_becomes_a_credential(api: ApiProcess) -> None:
    answer = put(api, "basic", url="http://me:hush-7@127.0.0.1:9/in")
    assert (answer.json["delivery"]["url"], answer.json["delivery"]["credential"]) == (
        TO,
        {"kind": "basic", "user": "me", "password": "***"},
    )
    assert "hush-7" not in stored(api)
    both = put(api, "basic", url="http://me:x@127.0.0.1:9/in", credential=CREDENTIALS[0])
    assert both.status == 400


def test_a_covered_secret_is_not_sent_to_a_new_address(api: ApiProcess) -> None:
    """HER-127."""
    put(api, "moved", credential=CREDENTIALS[0])
    covered = {**CREDENTIALS[0], "password": "***"}
    assert put(api, "moved", credential=covered).status == 200
    moved = put(api, "moved", url="http://127.0.0.1:9/elsewhere", credential=covered)
    assert (moved.status, "needs the secret" in moved.json["detail"]) == (400, True)
    assert put(api, "never", credential=covered).status == 400
    assert put(api, "moved").json["delivery"]["credential"] is None, "left out means removed"


def test_a_covered_header_stands_for_what_is_held_at_this_address_only(api: ApiProcess) -> None:
    put(api, "covered", headers={"authorization": "hush"})
    assert put(api, "covered", headers={"authorization": "***"}).status == 200
    assert put(api, "covered", url="http://127.0.0.1:9/elsewhere", headers={"authorization": "***"}).status == 400
    assert put(api, "covered", headers={"authorization": "***", "x-token": "***"}).status == 400


@pytest.mark.parametrize("name", ["webhook-signature", "Proxy-Authorization", "expect", "ce-id", "Host"])
def test_headers_of_the_hub_itself_are_refused(api: ApiProcess, name: str) -> None:
    """SUB-16."""
    assert put(api, "headers", headers={name: "x"}).status == 400


@pytest.mark.parametrize(
    "credential",
    [
        {"kind": "basic", "user": "a:b", "password": "hush-8"},
        {"kind": "basic", "user": "u", "password": "hush-8\r\nhost: x"},
        {"kind": "token", "token": "hush-8 x"},
        {"kind": "oauth", "provider": "nobody"},
        {"kind": "magic", "token": "hush-8"},
        {"kind": "basic", "pasword": "hush-8"},
    ],
)
def test_a_refusal_does_not_repeat_the_secret(api: ApiProcess, credential: dict[str, str]) -> None:
    answer = put(api, "bad", credential=credential)
    assert answer.status == 400
    assert b"hush-8" not in answer.body


@pytest.mark.parametrize("version", ["v1", "v1a"])
def test_a_signing_key_is_made_shown_once_and_rotated(api: ApiProcess, version: str) -> None:
    name = f"signed-{version}"
    made = put(api, name, signing=version).json["signing"]
    assert made["version"] == version
    shared = version == "v1"
    assert (made["secret"] or "").startswith("whsec_") is shared
    assert (made["publicKey"] or "").startswith("whpk_") is not shared
    seen = api.call("GET", f"/api/subscriptions/{name}").json
    assert seen["delivery"]["signing"] == version
    assert (seen["signing"]["secret"], seen["signing"]["publicKey"]) == (None, made["publicKey"])
    assert put(api, name, signing=version).json["signing"] == seen["signing"], "put again keeps the key"
    rotated = api.call("POST", f"/api/subscriptions/{name}/secret/rotate", {"grace": "1h"})
    assert rotated.status == 200
    assert rotated.json["oldKeyUntil"] is not None
    assert (rotated.json["secret"], rotated.json["publicKey"]) != (made["secret"], made["publicKey"])
    at_once = api.call("POST", f"/api/subscriptions/{name}/secret/rotate", {"grace": 0})
    assert at_once.json["oldKeyUntil"] is None
    for text in (stored(api), api.call("GET", "/api/changes", limit=1000).body.decode()):
        assert "whsec_" not in text and "whsk_" not in text


def test_only_signed_subscriptions_rotate_and_the_grace_is_bounded(api: ApiProcess) -> None:
    put(api, "plain")
    assert api.call("POST", "/api/subscriptions/plain/secret/rotate").status == 409
    put(api, "bounded", signing="v1")
    assert api.call("POST", "/api/subscriptions/bounded/secret/rotate", {"grace": "8d"}).status == 400
    assert api.call("POST", "/api/subscriptions/bounded/secret/rotate").json["secret"].startswith("whsec_")
    assert api.call("POST", "/api/subscriptions/nobody/secret/rotate").status == 404


def test_apply_tells_the_secrets_it_made_and_shows_none_otherwise(api: ApiProcess) -> None:
    delivery = {"url": TO, "signing": "v1", "headers": {"x-any": "hush-9"}, "credential": CREDENTIALS[0]}
    document = {"subscriptions": {"applied": {"topic": "orders", "delivery": delivery}}}
    assert api.call("POST", "/api/apply", document, dryRun=True).json["secrets"] is None
    first = api.call("POST", "/api/apply", document).json
    assert first["secrets"]["applied"].startswith("whsec_")
    second = api.call("POST", "/api/apply", document).json
    assert (second["secrets"], second["unchanged"], second["steps"]) == (None, 1, [])
    delivery["headers"] = {"x-any": "hush-10"}
    third = api.call("POST", "/api/apply", document, dryRun=True)
    assert third.json["steps"][0]["action"] == "update"
    assert b"hush-" not in third.body


def test_a_provider_is_kept_covered_and_removed(api: ApiProcess) -> None:
    assert api.call("PUT", "/api/providers/other", LOGIN).status == 201
    shown = api.call("GET", "/api/providers/other").json
    assert (shown["clientSecret"], shown["clientId"]) == ("***", "hub")
    again = api.call("PUT", "/api/providers/other", shown)
    assert (again.status, again.json) == (200, shown)
    assert api.call("PUT", "/api/providers/other", {**shown, "tokenEndpoint": "https://b.example/"}).status == 400
    assert api.call("PUT", "/api/providers/new", {**LOGIN, "clientSecret": "***"}).status == 400
    assert api.call("PUT", "/api/providers/new", {**LOGIN, "requestTimeout": "2m"}).status == 400
    assert [one["name"] for one in api.call("GET", "/api/providers").json["providers"]] == ["login", "other"]
    pushed = {"url": "https://a.example/", "credential": {"kind": "oauth", "provider": "other"}}
    assert api.call("PUT", "/api/subscriptions/showing", {"topic": "orders", "delivery": pushed}).status == 201
    refused = api.call("DELETE", "/api/providers/other")
    assert (refused.status, "used by showing" in refused.json["detail"]) == (409, True)
    assert api.call("DELETE", "/api/subscriptions/showing").status == 204
    assert api.call("DELETE", "/api/providers/other").status == 204
    assert api.call("GET", "/api/providers/other").status == 404
    assert "hush-client" not in stored(api)


def test_the_hub_shows_its_public_keys(api: ApiProcess) -> None:
    (key,) = api.call("GET", "/api/.well-known/jwks.json").json["keys"]
    assert (key["kty"], key["alg"], key["use"], "d" in key) == ("RSA", "RS256", "sig", False)
    assert jwt.PyJWK(key).key_id == key["kid"]
