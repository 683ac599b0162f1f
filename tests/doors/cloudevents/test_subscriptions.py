"""The Subscriptions API: CT-12 to CT-14, CT-17, CT-24, CT-25, and every bad member named at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api_process import an_api
from tests.doors.cloudevents.worlds import CONSENT, Door, a_door
from tests.receivers import Answer, Receiver
from tidings.access.authentication import token_digest

CREDENTIAL = {
    "credentialtype": "REFRESHTOKEN",
    "accesstoken": "hidden-access",
    "accesstokenexpiresutc": "2030-01-31T12:00:00Z",
    "accesstokentype": "bearer",
    "refreshtoken": "hidden-refresh",
    "refreshtokenendpoint": "https://tokens.example/refresh",
}


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with a_door(tmp_path_factory.mktemp("subscriptions")) as door:
        yield door


@pytest.fixture(scope="module")
def sink() -> Iterator[Receiver]:
    with Receiver([CONSENT]) as receiver:
        yield receiver


def pointers(answer: Any) -> list[str]:
    return [fault["attribute"] for fault in answer.json["errors"]]


def test_ct_12_a_subscription_is_made_read_replaced_and_ended(door: Door, sink: Receiver) -> None:
    wanted = {
        "source": "/shop",
        "types": ["order.created"],
        "filters": [{"exact": {"region": "eu"}}],
        "config": {"topic": "orders"},
        "id": "mine",
    }
    made = door.create(sink.url, **wanted)
    assert made.status == 201, made.body
    view = made.json
    id = view["id"]
    assert made.headers["location"] == f"/cloudevents/subscriptions/{id}" and id != "mine"
    assert view["protocolsettings"]["signing"].pop("secret").startswith("whsec_")
    assert view == {
        "id": id,
        "sink": sink.url,
        "protocol": "HTTP",
        "protocolsettings": {"method": "POST", "signing": {"version": "v1"}},
        "source": "/shop",
        "types": ["order.created"],
        "filters": [{"exact": {"region": "eu"}}],
        "config": {"topic": "orders"},
        "status": "active",
    }
    path = f"/subscriptions/{id}"
    assert door.call("GET", path).json == view
    assert view in door.call("GET", "/subscriptions").json
    replaced = door.call("PUT", path, {"id": id, "sink": sink.url, "protocol": "HTTP", "types": []})
    assert (replaced.status, "source" in replaced.json, replaced.json["types"]) == (200, False, [])
    assert door.call("PUT", path, {"id": "other", "sink": sink.url, "protocol": "HTTP"}).status == 400
    unknown = "/subscriptions/00000000-0000-4000-8000-000000000000"
    assert door.call("PUT", unknown, {"sink": sink.url, "protocol": "HTTP"}).status == 404
    for method in ("GET", "DELETE"):
        assert [door.call(method, where).status for where in (unknown, "/subscriptions/x", f"{path}x")] == [404, 404, 404]
    options, patched = door.call("OPTIONS", path), door.call("PATCH", path, {})
    assert (options.status, options.headers["allow"], options.body) == (200, "GET, PUT, DELETE, OPTIONS", b"")
    assert (patched.status, patched.headers["allow"]) == (405, "GET, PUT, DELETE, OPTIONS")
    assert door.call("OPTIONS", "/subscriptions").headers["allow"] == "GET, POST, OPTIONS"
    assert door.call("DELETE", "/subscriptions").status == 405
    ended = door.call("DELETE", path)
    assert (ended.status, ended.json) == (200, replaced.json)
    assert [door.call(method, path).status for method in ("GET", "DELETE")] == [404, 404]
    assert door.call("GET", "/subscriptions").json == []


@pytest.mark.parametrize(
    ("filters", "pointer"),
    [
        ([{"like": {"type": "x"}}], "/filters/0/like"),
        ([{"exact": {"type": "x"}}, {"exact": {"type": "x"}, "prefix": {"type": "x"}}], "/filters/1"),
        ([{"all": []}], "/filters/0/all"),
        ([{"not": []}], "/filters/0/not"),
        ([{"exact": {"type": ""}}], "/filters/0/exact/type"),
        ([{"exact": {"": "x"}}], "/filters/0/exact/"),
        ([{"exact": {}}], "/filters/0/exact"),
        ([{"exact": {"Type": "x"}}], "/filters/0/exact/Type"),
        ([{"exact": {"data": "x"}}], "/filters/0/exact/data"),
        ([{}], "/filters/0"),
        ([{"any": [{"all": [{"exact": {"a~b/c": "x"}}]}]}], "/filters/0/any/0/all/0/exact/a~0b~1c"),
        ({"exact": {"type": "x"}}, "/filters"),
        ([{"sql": "type ="}], "/filters/0/sql"),
        ([{"sql": "NOSUCH(type) = 1"}], "/filters/0/sql"),
        ([{"exact": {"type": "x"}}] * 501, "/filters/250"),
    ],
)
def test_ct_13_a_bad_filter_is_named_with_its_pointer(door: Door, filters: Any, pointer: str) -> None:
    refused = door.create("https://sink.example/", filters=filters)
    assert (refused.status, refused.headers["content-type"]) == (400, "application/problem+json")
    assert [found.startswith(pointer[:12]) for found in pointers(refused)] == [True]
    assert len(filters) > 500 or pointers(refused) == [pointer]
    assert door.call("GET", "/subscriptions").json == []


def test_every_fault_is_named_in_one_answer(door: Door) -> None:
    refused = door.call(
        "POST",
        "/subscriptions",
        {
            "sink": "ftp://x/",
            "protocol": "http",
            "filter": {"exact": {"type": "x"}},
            "source": "",
            "types": ["", 5],
            "filters": [{"sql": "("}],
            "protocolsettings": {"method": "PUT", "headers": {"Host": "x", "ce-id": "1", "webhook-id": "2", "x": 5}},
            "sinkcredential": {"credentialtype": "PLAIN", "identifier": "me", "secret": "hidden"},
            "config": {
                "contentmode": "xml",
                "batchsize": 0,
                "ordering": "none",
                "rate": "x",
                "start": "then",
                "tokenplacement": 1,
                "signing": "v2",
                "more": 1,
            },
        },
    )
    assert refused.status == 400
    assert set(pointers(refused)) == {
        *("/sink", "/protocol", "/filter", "/source", "/types/0", "/types/1", "/filters/0/sql", "/protocolsettings/method"),
        *(f"/protocolsettings/headers/{name}" for name in ("Host", "ce-id", "webhook-id", "x")),
        "/sinkcredential/credentialtype",
        *(
            f"/config/{key}"
            for key in ("contentmode", "batchsize", "ordering", "rate", "start", "tokenplacement", "signing", "more")
        ),
    }
    assert "hidden" not in refused.body.decode()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"[]", 400),
        (b'{"sink":"https://x.example/","sink":"https://y.example/","protocol":"HTTP"}', 400),
        (b'{"sink":"https://x.example/\\ud800","protocol":"HTTP"}', 400),
        (b'{"sink":null,"protocol":null,"filters":null,"config":null}', 400),
        (b'{"protocol":"MQTT5","sink":"https://x.example/"}', 400),
        (b'{"filters":' + b"[" * 1000 + b"]" * 1000 + b"}", 400),
        (b'{"x":"' + b"x" * (1 << 20) + b'"}', 413),
    ],
)
def test_bad_bodies_leave_nothing(door: Door, body: bytes, status: int) -> None:
    assert door.call("POST", "/subscriptions", body).status == status
    assert door.call("GET", "/subscriptions").json == []


def test_null_members_are_as_if_absent(door: Door, sink: Receiver) -> None:
    nothing = dict.fromkeys(("source", "types", "filters", "config", "protocolsettings", "sinkcredential"))
    made = door.create(sink.url, **nothing)
    assert (made.status, "filters" in made.json) == (201, False)
    door.call("DELETE", f"/subscriptions/{made.json['id']}")


@pytest.mark.parametrize(
    "address",
    [
        "http://sink.example/",
        "https://127.0.0.1/",
        "https://[::ffff:10.0.0.1]/",
        "https://2130706433/",
        "https://10.0.0.1/",
        "https://localhost/",
        "https://user@sink.example/",
        "https://sink.example/#part",
        f"https://sink.example/{'x' * 2048}",
    ],
)
def test_ct_24_sinks_that_may_not_be_reached_are_refused(tmp_path: Path, address: str) -> None:
    with a_door(tmp_path, push={"allow": [], "allow_loopback": "no"}) as door:
        refused = door.create(address)
        assert refused.status == 400
        assert refused.json["code"] in ("invalid-document", "malformed", "sink-forbidden")
        assert "10.0.0.1" not in refused.json["detail"] or "10.0.0.1" in address
        assert door.call("GET", "/subscriptions").json == []


def test_ct_25_secrets_are_never_shown(door: Door, sink: Receiver) -> None:
    headers = {"Authorization": "hidden-header", "x-team": "billing"}
    made = door.create(sink.url, sinkcredential=CREDENTIAL, protocolsettings={"headers": headers})
    assert made.status == 201, made.body
    path = f"/subscriptions/{made.json['id']}"
    shown = door.call("GET", path).json
    assert shown["protocolsettings"]["headers"] == {"Authorization": "***", "x-team": "billing"}
    assert shown["sinkcredential"] == {
        "credentialtype": "REFRESHTOKEN",
        "accesstokentype": "Bearer",
        "accesstokenexpiresutc": "2030-01-31T12:00:00.000000Z",
        "refreshtokenendpoint": "https://tokens.example/refresh",
    }
    answers = [made, door.call("GET", path), door.call("GET", "/subscriptions"), door.api.call("GET", "/api/subscriptions")]
    assert not any(b"hidden" in answer.body for answer in answers)
    assert not any(b"hidden" in file.read_bytes() for file in door.api.data.glob("*.db*"))
    assert not any(b"whsec_" in answer.body for answer in answers[1:])

    kept = door.call("PUT", path, shown)
    assert (kept.status, kept.json["sinkcredential"]) == (200, shown["sinkcredential"]), "a secret that is left out stays"
    with Receiver([CONSENT]) as elsewhere:
        moved = door.call("PUT", path, {**shown, "sink": elsewhere.url})
        assert (moved.status, elsewhere.arrivals) == (400, [])
    assert {"/sinkcredential/accesstoken", "/protocolsettings/headers/Authorization"} <= set(pointers(moved))
    without = {name: value for name, value in shown.items() if name != "sinkcredential"}
    assert "sinkcredential" not in door.call("PUT", path, without).json
    assert door.call("PUT", path, shown).status == 400, "there is no secret any more"
    crlf = door.create(sink.url, protocolsettings={"headers": {"x": "a\r\nb: c"}})
    assert crlf.status == 400
    door.call("DELETE", path)


def test_another_sink_is_asked_before_the_change_takes_effect(door: Door) -> None:
    """SUB-18."""
    with Receiver([CONSENT]) as first, Receiver([Answer(200)]) as second:
        made = door.create(first.url).json
        path = f"/subscriptions/{made['id']}"
        assert door.call("PUT", path, {"sink": second.url, "protocol": "HTTP"}).json["code"] == "handshake-refused"
        assert door.call("GET", path).json["sink"] == first.url
        assert door.call("PUT", path, {"sink": first.url, "protocol": "HTTP", "types": ["a"]}).status == 200
        assert (len(first.arrivals), len(second.arrivals)) == (1, 1)
        door.call("DELETE", path)


def test_keys_are_rotated_with_a_grace_time(door: Door, sink: Receiver) -> None:
    made = door.create(sink.url).json
    path = f"/subscriptions/{made['id']}"
    rotated = door.call("POST", f"{path}/secret/rotate", {"grace": "1h"})
    assert rotated.status == 200
    assert rotated.json["secret"].startswith("whsec_") and rotated.json["oldkeyuntil"]
    assert rotated.json["secret"] != made["protocolsettings"]["signing"]["secret"]
    assert "secret" not in door.call("GET", path).json["protocolsettings"]["signing"]
    for grace in ("8d", -1, "x", None, True):
        assert door.call("POST", f"{path}/secret/rotate", {"grace": grace}).status == 400
    assert door.call("POST", f"{path}/secret/rotate").status == 200
    public = door.call("PUT", path, {"sink": sink.url, "protocol": "HTTP", "config": {"signing": "v1a"}}).json
    assert public["protocolsettings"]["signing"]["publickey"].startswith("whpk_")
    assert "whsk_" not in str(public)
    door.call("PUT", path, {"sink": sink.url, "protocol": "HTTP", "config": {"signing": "none"}})
    assert door.call("POST", f"{path}/secret/rotate").status == 409
    door.call("DELETE", path)


def test_what_config_asks_for_is_in_force(door: Door, sink: Receiver) -> None:
    config = {"topic": "orders", "contentmode": "batch", "batchsize": "50", "ordering": "strict", "rate": 30, "signing": "none"}
    made = door.create(sink.url, config=config)
    assert (made.status, made.json["config"]) == (201, config), made.body
    name = f"cloudevents:{made.json['id']}"
    policy = door.api.call("GET", f"/api/subscriptions/{name}/policy").json
    assert (policy["wished"]["preset"], policy["inForce"]["batch"]["size"], policy["inForce"]["pace"]["minute"]) == (
        "cloudevents",
        50,
        30,
    )
    door.call("DELETE", f"/subscriptions/{made.json['id']}")
    asked = len(sink.arrivals)
    for config, pointer in (
        ({"topic": "nowhere"}, "/config/topic"),
        ({"topic": "a b"}, "/config/topic"),
        ({"start": "2999-01-01T00:00:00Z"}, "/config/start"),
        ({"start": "2030-01-01T00:00:00"}, "/config/start"),
        ({"contentmode": "batch", "ordering": "key"}, "/config/ordering"),
        ({"batchsize": 5}, "/config/batchsize"),
        ({"contentmode": "batch", "batchsize": 1001}, "/config/batchsize"),
    ):
        refused = door.create(sink.url, config=config)
        assert (refused.status, pointers(refused)) == (400, [pointer])
    assert len(sink.arrivals) == asked, "nobody is asked for consent to what is refused anyway"


def test_a_filter_that_may_not_be_meant_is_told(door: Door, sink: Receiver) -> None:
    """SQL-22."""
    made = door.create(sink.url, filters=[{"sql": "type = 'a' OR type = 'b' AND source = 'c'"}])
    assert made.status == 201 and len(made.json["lint"]) == 1
    door.call("DELETE", f"/subscriptions/{made.json['id']}")


def test_a_disabled_subscription_is_told_where_it_would_go_on(door: Door, sink: Receiver) -> None:
    made = door.create(sink.url).json
    path = f"/subscriptions/{made['id']}"
    assert door.call("POST", f"{path}/enable", {"from": "never"}).status == 400
    assert door.call("POST", f"{path}/enable", {"from": "now"}).status == 202, "delivery is away, and will do it"
    assert door.call("POST", f"{path}/enable", {"start": "now"}).status == 400
    door.call("DELETE", path)


def test_depth_and_number_of_filters_are_bounded(door: Door) -> None:
    """SUB-12."""
    deep: Any = {"exact": {"type": "x"}}
    for _ in range(32):
        deep = {"not": deep}
    for filters in ([deep], [{"exact": {"type": "x"}}] * 10_000, [{"exact": {"type": "x" * 70_000}}]):
        assert door.create("https://sink.example/", filters=filters).status == 400
    assert door.create("https://sink.example/", types=["x"] * 401).status == 400


def test_two_letter_cases_of_one_header_are_refused(door: Door, sink: Receiver) -> None:
    refused = door.create(sink.url, protocolsettings={"headers": {"X-Team": "1", "x-team": "2"}})
    assert (refused.status, pointers(refused)) == (400, ["/protocolsettings/headers"])
    assert door.create(sink.url, protocolsettings={"headers": {"x y": "1"}}).status == 400


def test_sub_17_a_caller_sees_only_its_own(tmp_path: Path, sink: Receiver) -> None:
    rights = {"ann": ["subscribe"], "bob": ["subscribe"], "pub": ["publish"], "root": ["admin", "subscribe"]}
    tokens = [{"name": name, "sha256": token_digest(name), "rights": given} for name, given in rights.items()]
    push = {"allow": ["127.0.0.0/8"]}
    with an_api(tmp_path, access={"mode": "tokens", "tokens": tokens}, push=push) as api:

        def call(by: str | None, method: str, path: str, body: Any = None) -> Any:
            headers = {"authorization": f"Bearer {by}"} if by else {}
            return api.call(method, f"/cloudevents{path}", body, headers)

        api.call("PUT", "/api/topics/orders", {}, {"authorization": "Bearer root"})
        wanted = {"sink": sink.url, "protocol": "HTTP", "config": {"topic": "orders"}}
        assert [call(by, "POST", "/subscriptions", wanted).status for by in (None, "pub")] == [401, 403]
        made = call("ann", "POST", "/subscriptions", wanted)
        assert made.status == 201, made.body
        path = f"/subscriptions/{made.json['id']}"
        for method, where, body in (
            ("GET", path, None),
            ("PUT", path, wanted),
            ("DELETE", path, None),
            ("POST", f"{path}/secret/rotate", None),
            ("POST", f"{path}/enable", {}),
        ):
            assert call("bob", method, where, body).status == 404
            assert call(None, method, where, body).status == 401
        assert [len(call(by, "GET", "/subscriptions").json) for by in ("ann", "bob", "root")] == [1, 0, 1]
        assert call("root", "PUT", path, wanted).status == 200
        assert call("ann", "GET", path).status == 200, "it is still hers"
        event = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}
        assert [call(by, "POST", "/topics/orders", event).status for by in (None, "ann")] == [401, 403]
