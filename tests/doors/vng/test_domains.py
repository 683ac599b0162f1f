"""`/vng/domains`: made, listed, found; with the switch changed and deleted (VT-31 to VT-33)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api_process import ApiProcess, an_api
from tests.doors.vng.worlds import ZAKEN, VngDoor, an_event, consenting, params, tokens
from tests.hub import free_port


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    with an_api(tmp_path_factory.mktemp("api")) as running:
        yield running


@pytest.fixture
def door(api: ApiProcess) -> VngDoor:
    return VngDoor(api)


def test_a_domain_is_made_and_found(door: VngDoor, api: ApiProcess) -> None:
    body = {
        "name": "nl.vng.a",
        "documentationLink": "https://vng.example/a",
        "filterAttributes": ["x", "nl.vng.Y"],
        "uuid": "no",
    }
    answer = door.call("POST", "/domains", body)
    made = answer.json
    assert answer.status == 201
    assert answer.headers["location"] == made["url"] == f"http://127.0.0.1:{api.port}/vng/domains/{made['uuid']}"
    assert {name: made[name] for name in ("name", "documentationLink", "filterAttributes")} == {
        name: body[name] for name in ("name", "documentationLink", "filterAttributes")
    }
    assert door.call("GET", f"/domains/{made['uuid']}").json == made
    assert door.call("GET", "/domains?name=nl.vng.a").json == {"count": 1, "results": [made]}
    assert door.call("GET", "/domains?name=NL.vng.a").json == {"count": 0, "results": []}


def test_what_is_left_out_of_a_domain(door: VngDoor) -> None:
    made = door.call("POST", "/domains", {"name": "nl.vng.min", "documentationLink": None}).json
    assert (made["documentationLink"], made["filterAttributes"]) == (None, [])


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ({}, {"name": "required"}),
        ({"name": None, "filterAttributes": "x"}, {"name": "required", "filterAttributes": "invalid"}),
        ({"name": ""}, {"name": "invalid"}),
        ({"name": "~hub"}, {"name": "invalid"}),
        ({"name": "a\nb"}, {"name": "invalid"}),
        ({"name": 5, "documentationLink": "ftp://x.example/"}, {"name": "invalid", "documentationLink": "invalid"}),
        ({"name": "q", "documentationLink": "relative"}, {"documentationLink": "invalid"}),
        ({"name": "q", "filterAttributes": ["", 5, None, "a\x00"]}, {f"filterAttributes.{n}": "invalid" for n in range(4)}),
        ({"name": "q", "filterAttributes": ["Zaaktype", "zaakType"]}, {"filterAttributes.1": "invalid"}),
        (b'{"name": "a", "name": "b"}', {"body": "parse_error"}),
        (b"[]", {"body": "parse_error"}),
        (b"{", {"body": "parse_error"}),
        (b"[" * 10_000, {"body": "parse_error"}),
        (b'{"name": "\\udc00"}', {"body": "parse_error"}),
    ],
)
def test_vt32_everything_wrong_is_named_and_nothing_is_stored(door: VngDoor, body: Any, found: dict[str, str]) -> None:
    before = door.call("GET", "/domains").json["count"]
    assert params(door.call("POST", "/domains", body)) == found
    assert door.call("GET", "/domains").json["count"] == before


def test_vt32_a_name_is_taken_once(door: VngDoor) -> None:
    door.domain("nl.vng.twice")
    assert params(door.call("POST", "/domains", {"name": "nl.vng.twice"})) == {"name": "unique"}


@pytest.mark.parametrize("name", ["Zaken van de gemeente (test)", "a:b", "a/b", "é", "-x", "x" * 300])
def test_a_domain_may_have_any_name(door: VngDoor, name: str) -> None:
    made = door.domain(name)
    assert door.publish(an_event(domain=name)).status == 200
    with consenting() as sink:
        assert door.subscribe(sink.url, domain=name).json["domain"] == name
    assert made["name"] == name


@pytest.mark.parametrize("uuid", ["a2de4777-1160-4562-a996-b79d27b30c99", "x", "%00", "a2de4777"])
def test_vt32_what_is_not_there(door: VngDoor, uuid: str) -> None:
    for kind in ("domains", "subscriptions"):
        answer = door.call("GET", f"/{kind}/{uuid}")
        assert (answer.status, answer.json["code"]) == (404, "not_found")


def test_domains_cannot_be_changed_without_the_switch(door: VngDoor) -> None:
    uuid = door.domain("nl.vng.fixed")["uuid"]
    for method in ("PUT", "PATCH", "DELETE"):
        answer = door.call(method, f"/domains/{uuid}", {"name": "nl.vng.fixed"})
        assert (answer.status, answer.headers["allow"]) == (405, "GET")
    assert door.call("DELETE", "/domains").headers["allow"] == "GET, POST"


def test_domains_are_changed_and_deleted_with_the_switch(tmp_path: Path) -> None:
    with an_api(tmp_path, vng={"domain_write": True}) as api, consenting() as sink:
        door = VngDoor(api)
        uuid = door.domain(ZAKEN, "x", documentationLink="https://vng.example/")["uuid"]
        assert door.publish(an_event(y="1")).status == 400
        patched = door.call("PATCH", f"/domains/{uuid}", {"filterAttributes": ["y"]})
        assert (patched.status, patched.json["filterAttributes"]) == (200, ["y"])
        assert patched.json["documentationLink"] == "https://vng.example/"
        assert door.publish(an_event(y="1")).status == 200
        put = door.call("PUT", f"/domains/{uuid}", {"name": ZAKEN})
        assert (put.status, put.json["filterAttributes"], put.json["documentationLink"]) == (200, [], None)
        assert params(door.call("PATCH", f"/domains/{uuid}", {"name": "other"})) == {"name": "invalid"}
        subscription = door.subscribed(sink.url, domain=ZAKEN)
        assert door.call("DELETE", f"/domains/{uuid}").status == 409
        assert door.call("DELETE", f"/subscriptions/{subscription['id']}").status == 204
        gone = door.call("DELETE", f"/domains/{uuid}")
        assert (gone.status, gone.body, gone.headers["api-version"]) == (204, b"", "0.1.5")
        assert door.call("DELETE", f"/domains/{uuid}").status == 404
        assert params(door.publish(an_event())) == {"domain": "does_not_exist"}


def test_vt31_pages(tmp_path: Path) -> None:
    with an_api(tmp_path) as api:
        door = VngDoor(api)
        assert door.call("GET", "/domains").json == {"count": 0, "results": []}
        names = [f"d{n}" for n in range(100)]
        for name in names:
            door.domain(name)
        full = door.call("GET", "/domains").json
        assert (full["count"], [one["name"] for one in full["results"]]) == (100, names)
        assert full.keys() == {"count", "results"}
        door.domain("last")
        first = door.call("GET", "/domains?unknown=1").json
        assert first.keys() == {"count", "next", "results"}
        second = door.api.call("GET", first["next"].partition(str(api.port))[2]).json
        assert second.keys() == {"count", "previous", "results"}
        assert [one["name"] for one in second["results"]] == ["last"]
        assert door.api.call("GET", second["previous"].partition(str(api.port))[2]).json == first
        beyond = door.call("GET", "/domains?page=99").json
        assert (beyond["count"], beyond["results"], "next" in beyond) == (101, [], False)


@pytest.mark.parametrize("page", ["0", "-1", "x", "", "1.5", "2147483648", "9" * 5000])
def test_vt31_a_page_that_is_none(door: VngDoor, page: str) -> None:
    for kind in ("domains", "subscriptions"):
        assert params(door.call("GET", f"/{kind}?page={page}")) == {"page": "invalid"}


def test_vt33_tokens_and_what_they_may(tmp_path: Path) -> None:
    access = tokens(pub=["publish"], con=["subscribe"], other=["subscribe"], none=["metrics"])
    with an_api(tmp_path, access=access, push={"allow_loopback": "yes"}) as api, consenting() as sink:
        nobody, publisher, consumer, other = (VngDoor(api, token) for token in (None, "pub", "con", "other"))
        body = {"sink": sink.url, "protocol": "HTTP"}
        for method, path in (("POST", "/events"), ("GET", "/domains"), ("POST", "/subscriptions")):
            answer = nobody.call(method, path, body)
            assert (answer.status, answer.json["code"]) == (401, "not_authenticated")
            assert answer.headers["www-authenticate"].startswith("Bearer")
        assert VngDoor(api, "wrong").call("GET", "/domains").status == 401
        publisher.domain()
        assert consumer.call("POST", "/domains", {"name": "x"}).status == 403
        assert consumer.publish(an_event()).status == 403
        assert publisher.call("POST", "/subscriptions", body).status == 403
        assert VngDoor(api, "none").call("GET", "/domains").status == 403
        path = f"/subscriptions/{consumer.subscribed(sink.url)['id']}"
        assert consumer.call("GET", path).status == publisher.call("GET", path).status == 200
        assert [one.call("GET", "/subscriptions").json["count"] for one in (publisher, consumer, other)] == [1, 1, 0]
        for method in ("GET", "PUT", "PATCH", "DELETE"):
            assert other.call(method, path, body if method != "GET" else None).status == 404
        assert publisher.call("DELETE", path).status == 403
        assert consumer.call("DELETE", path).status == 204


def test_what_is_not_accepted_and_other_content_types(door: VngDoor) -> None:
    assert door.call("GET", "/domains", headers={"accept": "text/html"}).status == 406
    assert door.call("GET", "/domains", headers={"accept": "application/problem+json"}).status == 200
    assert door.call("POST", "/domains", b"name=x", {"content-type": "text/plain"}).status == 415
    assert door.call("POST", "/domains", b"{}", {"content-type": "application/merge-patch+json"}).status == 415
    assert door.call("GET", "/nothing").status == 404
    assert door.call("GET", "").status == 404


def test_a_large_body_is_refused_before_it_is_held(door: VngDoor) -> None:
    for path in ("/domains", "/subscriptions", "/events"):
        answer = door.call("POST", path, b" " * (100 << 20), {"content-type": "application/json"})
        assert (answer.status, answer.json["code"]) == (413, "too_large")


def test_paths_stand_at_the_root_of_a_port_of_its_own(tmp_path: Path) -> None:
    port = free_port()
    with an_api(tmp_path, vng={"port": port}) as api:
        own = ApiProcess(port, tmp_path)
        made = own.call("POST", "/domains", {"name": ZAKEN})
        assert made.headers["location"] == f"http://127.0.0.1:{port}/domains/{made.json['uuid']}"
        assert own.call("POST", "/events", an_event()).status == 200
        assert own.call("POST", "/vng/events", an_event()).status == 200
        assert own.call("GET", f"/domains/{made.json['uuid']}").json == made.json
        assert VngDoor(api).call("GET", f"/domains/{made.json['uuid']}").json["name"] == ZAKEN
        assert own.call("GET", "/api/topics").status == 404
