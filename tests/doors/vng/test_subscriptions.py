"""`/vng/subscriptions`: what is taken, changed, refused and shown (VT-18, VT-20, VT-27, VT-29, VT-30, VT-37)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.api_process import ApiProcess, an_api
from tests.doors.vng.worlds import CONSENT, ZAKEN, VngDoor, consenting, params
from tests.receivers import Answer as SinkAnswer
from tests.receivers import Receiver
from tidings.errors import FilterSyntaxError
from tidings.filters import parse

DATA = Path(__file__).parents[4] / "shared" / "data" / "vng"
TOKEN = {"credentialType": "ACCESSTOKEN", "accessToken": "s3cr3t-token", "accessTokenExpiresUtc": "2099-01-01T00:00:00Z"}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    with an_api(tmp_path_factory.mktemp("api")) as running:
        VngDoor(running).domain(ZAKEN)
        yield running


@pytest.fixture
def door(api: ApiProcess) -> VngDoor:
    return VngDoor(api)


@pytest.fixture(scope="module")
def sink() -> Iterator[Receiver]:
    with consenting() as receiver:
        yield receiver


def test_a_subscription_is_answered_as_it_was_given(door: VngDoor, sink: Receiver) -> None:
    given = {
        "source": "urn:nld:x",
        "domain": ZAKEN,
        "types": ["a", "b"],
        "filters": [{"exact": {"Type": "a"}}],
        "config": {"own": "word", "rate": "60"},
        "subscriberReference": "ref",
        "protocolSettings": {"headers": {"X-Afnemer": "gemeente", "X-Api-Key": "k3y"}, "method": "POST"},
    }
    answer = door.subscribe(sink.url, **given, id="mine", url="mine", unknown=5)
    made = answer.json
    assert answer.status == 201
    assert answer.headers["location"] == made["url"] and made["url"].endswith(made["id"])
    shown = {**given, "protocolSettings": {"headers": {"X-Afnemer": "gemeente", "X-Api-Key": "***"}, "method": "POST"}}
    assert {name: made[name] for name in given} == shown
    assert (made["sink"], made["protocol"], made["status"]) == (sink.url, "HTTP", "active")
    assert door.call("GET", f"/subscriptions/{made['id']}").json == made
    assert made["id"] not in ("mine",)


def test_unset_members_may_be_null(door: VngDoor, sink: Receiver) -> None:
    unset = ("source", "domain", "types", "filters", "config", "subscriberReference", "protocolSettings", "sinkCredential")
    made = door.subscribed(sink.url, **dict.fromkeys(unset))
    assert not made.keys() & set(unset)


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ([], None),
        ([{}], {"filters.0": "invalid-value"}),
        ({"exact": {"type": "a"}}, None),
        ([{"sql": "TRUE"}], {"filters.0.sql": "invalid-value"}),
        ([{"exact": {"type": "a"}, "not": {"exact": {}}}], {"filters.0": "invalid-value"}),
        ([{"all": []}], {"filters.0.all": "invalid-value"}),
        ([{"not": []}], {"filters.0.not": "invalid-value"}),
        ([{"exact": {"type": 5}}], {"filters.0.exact.type": "invalid-value"}),
        ([{"exact": {}}], None),
        ([{"any": [{"exact": {}}, {"prefix": {"type": None}}]}], {"filters.0.any.1.prefix.type": "invalid-value"}),
        ("x", {"filters": "invalid-value"}),
        ([{"exact": {"vertrouwelijkheid": "", "type": "nooit"}}, {"exact": {"type": "anders"}}], None),
        ([{"exact": {"x": "y"}}] * 10_000, "too-complex"),
    ],
)
def test_vt18_and_vt19_filters(door: VngDoor, sink: Receiver, filters: Any, found: Any) -> None:
    answer = door.subscribe(sink.url, filters=filters)
    if found is None:
        assert answer.status == 201
        assert answer.json.get("filters", []) == ([filters] if isinstance(filters, dict) else filters)
    elif found == "too-complex":
        assert list(params(answer).values()) == ["too-complex"]
    else:
        assert params(answer) == found


def nested(depth: int) -> Any:
    made: Any = {"exact": {"type": "a"}}
    for _ in range(depth - 1):
        made = {"not": made}
    return made


@pytest.mark.parametrize(("depth", "code"), [(32, None), (33, "too-complex"), (120, "too-complex")])
def test_filters_nest_so_deep(door: VngDoor, sink: Receiver, depth: int, code: str | None) -> None:
    answer = door.subscribe(sink.url, filters=[nested(depth)])
    assert answer.status == 201 if code is None else set(params(answer).values()) == {code}


def test_a_body_that_nests_deeper_than_any_json_here(door: VngDoor, sink: Receiver) -> None:
    deep = b'{"not":' * 1000 + b'{"exact":{}}' + b"}" * 1000
    body = b'{"sink": "%b", "protocol": "HTTP", "filters": [%b]}' % (sink.url.encode(), deep)
    assert params(door.call("POST", "/subscriptions", body)) == {"body": "parse_error"}


def test_switches_of_filters(sink: Receiver, tmp_path: Path) -> None:
    old = [{"any": [{"exact": {"attribute": "type", "value": "x"}}]}]
    with an_api(tmp_path, vng={"filters_object_ok": False, "reject_old_filter_form": True}) as api:
        strict = VngDoor(api)
        assert params(strict.subscribe(sink.url, filters={"exact": {}})) == {"filters": "invalid-value"}
        assert params(strict.subscribe(sink.url, filters=old)) == {"filters.0.any.0.exact": "invalid-value"}


def test_the_withdrawn_form_is_noted(door: VngDoor, sink: Receiver) -> None:
    made = door.subscribed(sink.url, filters=[{"any": [{"exact": {"attribute": "type", "value": "x"}}]}])
    (note,) = made["lint"]
    assert note.startswith("filters.0.any.0.exact: ")


names = st.sampled_from(["type", "Domain", "nl.vng.x", "a b", "data", ""])
leaf_words = st.sampled_from(["exact", "prefix", "suffix", "sql", "all"])
leaves = st.fixed_dictionaries({}) | st.dictionaries(
    leaf_words, st.dictionaries(names, st.text(max_size=3) | st.integers() | st.none(), max_size=2), min_size=1, max_size=2
)
trees = st.recursive(
    leaves,
    lambda inner: (
        st.fixed_dictionaries({"all": st.lists(inner, max_size=2)})
        | st.fixed_dictionaries({"any": st.lists(inner, max_size=2)})
        | st.fixed_dictionaries({"not": inner | st.lists(inner, max_size=1)})
    ),
    max_leaves=6,
)


@given(st.lists(trees, max_size=2))
@settings(max_examples=300)
def test_vt20_the_validator_agrees_with_the_published_schema(filters: list[Any]) -> None:
    schema = json.loads((DATA / "filters_schema.json").read_text())
    schema["$schema"] = "http://json-schema.org/draft-07/schema#"
    # The schema lets an empty object pass: none of its alternatives requires its own key (VNG-16 refuses it).
    valid = jsonschema_rs.Draft7Validator(schema).is_valid({"filters": filters})
    try:
        parse("vng", filters)
    except FilterSyntaxError:
        assert not valid or has_empty(filters)
    else:
        assert valid


def has_empty(raw: Any) -> bool:
    """Whether an empty object stands where a filter should be."""
    if isinstance(raw, list):
        return any(map(has_empty, raw))
    return isinstance(raw, dict) and (not raw or any(has_empty(raw[word]) for word in ("all", "any", "not") if word in raw))


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ({}, {"sink": "required", "protocol": "required"}),
        ({"sink": None, "protocol": None}, {"sink": "required", "protocol": "required"}),
        ({"protocol": "http", "sink": 5}, {"sink": "invalid", "protocol": "invalid"}),
        ({"domain": "onbekend"}, {"domain": "does_not_exist"}),
        ({"types": "x", "source": "", "config": []}, {"types": "invalid", "source": "invalid", "config": "invalid"}),
        ({"types": [5, ""], "config": {"a": 5}}, {"types.0": "invalid", "types.1": "invalid", "config.a": "invalid"}),
        (
            {"protocolSettings": {"method": "PUT", "headers": {"a": 5}}},
            {"protocolSettings.method": "invalid", "protocolSettings.headers.a": "invalid"},
        ),
        (
            {"protocolSettings": {"headers": {"Content-Type": "x", "ce-id": "x", "a b": "x", "ok": "x\r\ny"}}},
            {f"protocolSettings.headers.{name}": "invalid" for name in ("Content-Type", "ce-id", "a b", "ok")},
        ),
        ({"config": {"rate": "0", "signing": "v9"}}, {"config.rate": "invalid", "config.signing": "invalid"}),
        ({"config": {"tokenPlacement": "body"}}, {"config.tokenPlacement": "invalid"}),
        ({"config": {"cloudEventsNames": "yes"}}, {"config.cloudEventsNames": "invalid"}),
        ({"sinkCredential": {"credentialType": "PLAIN"}}, {"sinkCredential.credentialType": "invalid"}),
        ({"sinkCredential": {}}, None),
        (
            {"sinkCredential": {"credentialType": "REFRESHTOKEN"}},
            {
                f"sinkCredential.{name}": "required"
                for name in ("accessToken", "accessTokenExpiresUtc", "refreshToken", "refreshTokenEndpoint")
            },
        ),
        (
            {"sinkCredential": {**TOKEN, "accessTokenExpiresUtc": "soon"}},
            {"sinkCredential.accessTokenExpiresUtc": "invalid"},
        ),
        ({"sinkCredential": {**TOKEN, "accessToken": "a\nb"}}, {"sinkCredential.accessToken": "invalid"}),
    ],
)
def test_every_fault_is_named_and_nothing_is_stored(
    door: VngDoor, sink: Receiver, body: dict[str, Any], found: dict[str, str] | None
) -> None:
    before = door.call("GET", "/subscriptions").json["count"]
    base = {} if "sink" in body or not body else {"sink": sink.url, "protocol": "HTTP"}
    answer = door.call("POST", "/subscriptions", {**base, **body})
    if found is None:
        assert answer.status == 201
        return
    assert params(answer) == found
    assert door.call("GET", "/subscriptions").json["count"] == before


@pytest.mark.parametrize("origin", [None, "elders.example"])
def test_vt27_a_sink_that_does_not_consent(door: VngDoor, origin: str | None) -> None:
    headers = {"webhook-allowed-origin": origin} if origin else {}
    before = door.call("GET", "/subscriptions").json["count"]
    with consenting(consent=SinkAnswer(200, headers)) as refusing:
        assert params(door.subscribe(refusing.url)) == {"sink": "invalid-callback-url"}
        assert [one.method for one in refusing.arrivals] == ["OPTIONS"]
    assert door.call("GET", "/subscriptions").json["count"] == before


@pytest.mark.parametrize(
    "consent",
    [
        SinkAnswer(302, {"location": "http://127.0.0.1:1/", **CONSENT.headers}),
        SinkAnswer(drop=True),
        SinkAnswer(200, {"webhook-allowed-origin": "*", "webhook-allowed-rate": "0"}),
        SinkAnswer(200, {"webhook-allowed-origin": "*", "webhook-allowed-rate": "x"}),
    ],
)
def test_vt27_a_sink_that_redirects_breaks_off_or_consents_wrongly(door: VngDoor, consent: SinkAnswer) -> None:
    with consenting(consent=consent) as refusing:
        assert params(door.subscribe(refusing.url)) == {"sink": "invalid-callback-url"}


def test_vt27_addresses(sink: Receiver, tmp_path: Path) -> None:
    with an_api(tmp_path, push={"allow_loopback": "no"}) as api:
        door = VngDoor(api)
        assert params(door.subscribe(sink.url)) == {"sink": "invalid"}
        assert params(door.subscribe("https://10.0.0.1/hook")) == {"sink": "sink-forbidden"}
        assert params(door.subscribe("https://127.0.0.1/hook")) == {"sink": "sink-forbidden"}
        assert params(door.subscribe("https://user:pw@x.example/hook")) == {"sink": "invalid"}
        assert door.call("GET", "/subscriptions").json["count"] == 0


def test_a_sink_that_knows_no_handshake_by_policy(tmp_path: Path) -> None:
    for policy, status in (("warn", "unverified"), ("legacy-post", "active")):
        with an_api(tmp_path / policy, vng={"handshake": policy}) as api, consenting(consent=SinkAnswer(405)) as plain:
            assert VngDoor(api).subscribed(plain.url)["status"] == status
            assert [one.method for one in plain.arrivals] == ["OPTIONS", *(["POST"] if policy == "legacy-post" else [])]


def test_vt29_secrets_are_kept_and_never_shown(door: VngDoor, sink: Receiver, api: ApiProcess) -> None:
    made = door.subscribed(sink.url, types=["a"], source="/x", sinkCredential=TOKEN)
    path = f"/subscriptions/{made['id']}"
    assert made["sinkCredential"] == {
        "credentialType": "ACCESSTOKEN",
        "accessTokenType": "bearer",
        "accessTokenExpiresUtc": "2099-01-01T00:00:00.000000Z",
    }
    patched = door.call("PATCH", path, {"types": ["b"]}).json
    assert patched == {**made, "types": ["b"]}
    again = {name: value for name, value in made.items() if name != "types"}
    put = door.call("PUT", path, again)
    assert put.status == 200, put.body
    assert put.json == again
    for answer in (
        door.call("GET", path),
        door.call("GET", "/subscriptions"),
        api.call("GET", f"/api/subscriptions/vng:{made['id']}"),
    ):
        assert b"s3cr3t" not in answer.body
    # The files hold it sealed.
    assert not any(b"s3cr3t" in file.read_bytes() for file in api.data.rglob("*") if file.is_file())


def test_a_new_sink_needs_the_token_again(door: VngDoor, sink: Receiver) -> None:
    made = door.subscribed(sink.url, sinkCredential=TOKEN, protocolSettings={"headers": {"x-key": "k3y"}})
    with consenting() as other:
        refused = door.call("PATCH", f"/subscriptions/{made['id']}", {"sink": other.url})
        assert params(refused) == {"sinkCredential.accessToken": "required", "protocolSettings.headers.x-key": "invalid"}
        moved = {"sink": other.url, "sinkCredential": TOKEN, "protocolSettings": {"headers": {"x-key": "k3y"}}}
        assert door.call("PATCH", f"/subscriptions/{made['id']}", moved).json["sink"] == other.url
        assert [one.method for one in other.arrivals] == ["OPTIONS"]


@pytest.mark.parametrize(
    ("patch", "found"),
    [
        ({}, None),
        ({"sink": None}, {"sink": "required"}),
        ({"protocol": None}, {"protocol": "required"}),
        ({"domain": "nope"}, {"domain": "does_not_exist"}),
        ({"id": "a2de4777-1160-4562-a996-b79d27b30c99"}, {"id": "invalid"}),
        ({"id": 5}, {"id": "invalid"}),
        ({"types": None, "config": {"a": None, "b": "2"}}, None),
    ],
)
def test_vt30_patches(door: VngDoor, sink: Receiver, patch: dict[str, Any], found: dict[str, str] | None) -> None:
    made = door.subscribed(sink.url, types=["a"], config={"a": "1"})
    answer = door.call("PATCH", f"/subscriptions/{made['id']}", patch, {"content-type": "application/merge-patch+json"})
    if found is not None:
        assert params(answer) == found
        assert door.call("GET", f"/subscriptions/{made['id']}").json == made
    elif not patch:
        assert (answer.status, answer.json) == (200, made)
    else:
        assert (answer.json["config"], "types" in answer.json) == ({"b": "2"}, False)


def test_a_change_without_a_new_sink_asks_it_nothing(door: VngDoor) -> None:
    with consenting() as receiver:
        made = door.subscribed(receiver.url)
        assert door.call("PATCH", f"/subscriptions/{made['id']}", {"types": ["a"]}).status == 200
        assert len(receiver.arrivals) == 1


def test_put_replaces_everything(door: VngDoor, sink: Receiver) -> None:
    made = door.subscribed(
        sink.url, types=["a"], domain=ZAKEN, subscriberReference="r", config={"a": "b"}, sinkCredential=TOKEN
    )
    put = door.call("PUT", f"/subscriptions/{made['id']}", {"sink": sink.url, "protocol": "HTTP"})
    assert put.json.keys() == {"url", "id", "sink", "protocol", "status"}


def test_vt37_the_filter_object_of_the_text_as_printed(door: VngDoor, sink: Receiver) -> None:
    text = (Path(__file__).parents[4] / "shared" / "seeds").glob("004*")
    document = next(text).read_text("utf-8")
    printed = json.loads(document.partition("```json")[2].partition("```")[0])
    made = door.subscribed(sink.url, filters=printed)
    assert made["filters"] == [printed]


def test_the_native_api_shows_it_and_leaves_changing_to_this_door(door: VngDoor, sink: Receiver, api: ApiProcess) -> None:
    made = door.subscribed(sink.url, types=["a"], filters=[{"exact": {"x": "y"}}])
    shown = api.call("GET", f"/api/subscriptions/vng:{made['id']}").json
    assert shown["filter"] == {"dialect": "vng", "filter": {"types": ["a"], "filters": [{"exact": {"x": "y"}}]}}
    assert (shown["delivery"]["preset"], shown["format"]) == ("vng", "vng")
    for method, body in (("DELETE", None), ("PATCH", {"description": "x"})):
        answer = api.call(method, f"/api/subscriptions/vng:{made['id']}", body)
        assert (answer.status, "below /vng" in answer.json["detail"]) == (409, True)
    assert api.call("PUT", "/api/topics/vng:new", {}).status == 409


@pytest.mark.slow
def test_vt27_a_sink_that_never_answers(door: VngDoor) -> None:
    with consenting(consent=SinkAnswer(hang=True)) as hanging:
        assert params(door.subscribe(hanging.url)) == {"sink": "invalid-callback-url"}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=5,
)
SETTINGS = ("headers", "method", "credentialType", "accessToken", "accessTokenExpiresUtc", "refreshToken", "rate", "signing")
MEMBERS = ("protocol", "protocolSettings", "sinkCredential", "source", "domain", "types", "filters", "config")
settings_values = st.dictionaries(st.sampled_from(SETTINGS), json_values, max_size=3)
bodies = st.dictionaries(
    st.sampled_from((*MEMBERS, "subscriberReference", "id", "name", "filterAttributes")),
    json_values | settings_values,
    max_size=4,
)


def test_whatever_is_sent_is_answered_with_its_faults(door: VngDoor, sink: Receiver) -> None:
    path = f"/subscriptions/{door.subscribed(sink.url)['id']}"

    @given(bodies)
    @settings(max_examples=60)
    def sent(body: dict[str, Any]) -> None:
        given = {"sink": sink.url, "protocol": "HTTP", **body}
        for method, address, document in (("POST", "/subscriptions", given), ("PUT", path, given), ("PATCH", path, body)):
            answer = door.call(method, address, document)
            assert answer.status in (200, 201) or params(answer), answer.body
        assert door.call("POST", "/domains", body).status in (201, 400)
        assert params(door.publish(body))

    sent()
