"""`POST /vng/events`: what is taken, what is refused, with every fault in one answer (VT-01 to VT-12)."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.api_process import ApiProcess, an_api
from tests.doors.vng.worlds import EVENT, ZAKEN, VngDoor, an_event, params
from tidings.doors.vng.publish.event_rules import EventChoices, faults_of, is_sound

ATTRIBUTES = ("bronorganisatie", "vertrouwelijkheid", "nl.vng.zgw.zaken.Zaaktype")


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    with an_api(tmp_path_factory.mktemp("api")) as running:
        door = VngDoor(running)
        door.domain(ZAKEN, *ATTRIBUTES)
        door.domain("kaal")
        yield running


@pytest.fixture
def door(api: ApiProcess) -> VngDoor:
    return VngDoor(api)


def stored(api: ApiProcess, event: dict[str, Any]) -> list[Any]:
    return [one for one in api.events(f"vng:{event['domain']}") if one["id"] == event["id"]]


def test_vt01_a_valid_event_is_answered_and_stored(door: VngDoor, api: ApiProcess) -> None:
    event = an_event(vertrouwelijkheid="openbaar")
    answer = door.publish(event)
    assert (answer.status, answer.json) == (200, event)
    assert answer.headers["content-type"] == EVENT
    assert answer.headers["api-version"] == "0.1.5"
    assert "location" not in answer.headers
    assert stored(api, event) == [event]


@pytest.mark.parametrize(
    ("members", "found"),
    [
        ({"data_base64": "aGE="}, {"nonFieldErrors": "xor"}),
        ({"data": ...}, {"nonFieldErrors": "xor"}),
        ({"data": None}, None),
        ({"data": ..., "data_base64": None}, {"nonFieldErrors": "xor"}),
        ({"data": ..., "data_base64": "aGE="}, None),
        ({"data": ..., "data_base64": "%%%"}, {"data_base64": "invalid-value"}),
        ({"data": ..., "data_base64": 5}, {"data_base64": "invalid-value"}),
        ({"data": ..., "dataref": "https://zaken.example/1"}, {"nonFieldErrors": "xor"}),
        ({"dataref": "https://zaken.example/1"}, None),
    ],
)
def test_vt02_data_or_data_base64(door: VngDoor, members: dict[str, Any], found: dict[str, str] | None) -> None:
    answer = door.publish(an_event(**members))
    assert answer.status == 200 if found is None else params(answer) == found


@pytest.mark.parametrize(
    ("members", "found"),
    [
        ({"sequence": "1"}, {"nonFieldErrors": "sequence-pair"}),
        ({"sequencetype": "Integer"}, {"nonFieldErrors": "sequence-pair"}),
        ({"sequence": "1", "sequencetype": "Integer"}, None),
        ({"sequence": "1", "sequencetype": "integer"}, {"sequencetype": "invalid"}),
        ({"sequence": None, "sequencetype": None}, None),
        ({"sequence": "1", "sequencetype": None}, {"nonFieldErrors": "sequence-pair"}),
    ],
)
def test_vt03_sequence_and_sequencetype(door: VngDoor, members: dict[str, Any], found: dict[str, str] | None) -> None:
    answer = door.publish(an_event(**members))
    assert answer.status == 200 if found is None else params(answer) == found


def test_vt04_only_the_attribute_that_is_not_declared_is_named(door: VngDoor) -> None:
    assert params(door.publish(an_event(vertrouwelijkheid="x", test="y"))) == {"test": "unknown-attribute"}


@pytest.mark.parametrize(
    ("members", "found"),
    [
        ({"vertrouwelijkheid": "x"}, None),
        ({"Vertrouwelijkheid": "x"}, None),
        ({"vertrouwelijkheid": ""}, None),
        ({"nl.vng.zgw.zaken.zaaktype": "x"}, None),
        ({"vertrouwelijkheid": 5}, {"vertrouwelijkheid": "invalid"}),
        ({"vertrouwelijkheid": True}, {"vertrouwelijkheid": "invalid"}),
        ({"vertrouwelijkheid": ["x"]}, {"vertrouwelijkheid": "invalid"}),
        ({"vertrouwelijkheid": None}, None),
        ({"vertrouwelijkheid": "x", "Vertrouwelijkheid": "x"}, {"Vertrouwelijkheid": "invalid"}),
        ({"vertrouwelijkheid": "a\nb"}, {"vertrouwelijkheid": "invalid"}),
    ],
)
def test_vt05_values_and_spellings_of_extras(door: VngDoor, members: dict[str, Any], found: dict[str, str] | None) -> None:
    answer = door.publish(an_event(**members))
    assert answer.status == 200 if found is None else params(answer) == found


def test_vt06_a_domain_without_filter_attributes_allows_no_extras_unless_the_switch_is_on(
    door: VngDoor, tmp_path: Path
) -> None:
    assert params(door.publish(an_event(domain="kaal", test="y"))) == {"test": "unknown-attribute"}
    with an_api(tmp_path, vng={"undeclared_attributes": True}) as api:
        lenient = VngDoor(api)
        lenient.domain("kaal")
        lenient.domain(ZAKEN, "test")
        event = an_event(domain="kaal", test="y", **{"$headers": "z", 'a"b': "c"})
        assert lenient.publish(event).status == 200
        assert [line["event"]["id"] for line in api.lines("vng:kaal") if "event" in line] == [event["id"]]
        assert params(lenient.publish(an_event(other="y"))) == {"other": "unknown-attribute"}


def test_vt07_type_outside_of_the_domain_and_data_against_its_schema_are_not_checked(door: VngDoor) -> None:
    assert door.publish(an_event(type="elders.iets")).status == 200
    assert door.publish(an_event(dataschema="https://zaken.example/schema.json", data="no object")).status == 200


REQUIRED = ("id", "source", "domain", "specversion", "type")


def test_vt08_every_required_member_that_is_missing_is_named_in_one_answer(door: VngDoor) -> None:
    assert params(door.publish({"data": 1})) == dict.fromkeys(REQUIRED, "required")
    assert params(door.publish({**dict.fromkeys(REQUIRED), "data": 1})) == dict.fromkeys(REQUIRED, "required")
    assert params(door.publish({**dict.fromkeys(REQUIRED, ""), "data": 1})) == dict.fromkeys(REQUIRED, "invalid")
    assert params(door.publish({**dict.fromkeys(REQUIRED, 5), "data": 1})) == dict.fromkeys(REQUIRED, "invalid")


@pytest.mark.parametrize(
    ("members", "found"),
    [
        ({"domain": "onbekend"}, {"domain": "does_not_exist"}),
        ({"specversion": "0.3"}, {"specversion": "invalid"}),
        ({"time": "yesterday"}, {"time": "invalid"}),
        ({"time": "2022-02-30T00:00:00Z"}, {"time": "invalid"}),
        ({"time": None}, None),
        ({"subscription": "x"}, {"subscription": "invalid"}),
        ({"subscription": "a2de4777-1160-4562-a996-b79d27b30c99"}, None),
        ({"dataschema": "not a uri"}, {"dataschema": "invalid"}),
        ({"dataref": "nowhere"}, {"dataref": "invalid"}),
        ({"source": "a b"}, {"source": "invalid"}),
        ({"source": "/relative"}, None),
        ({"subject": ""}, {"subject": "invalid"}),
        ({"datacontenttype": "text/plain"}, {"datacontenttype": "invalid"}),
        ({"datacontenttype": "Application/JSON; charset=utf-8"}, None),
        ({"datacontenttype": None}, None),
        ({"Type": "x"}, {"Type": "invalid"}),
        ({"subscriberReference": "a", "subscriberreference": "b"}, {"subscriberreference": "invalid"}),
        ({"SubscriberReference": "a"}, {"SubscriberReference": "invalid"}),
        ({"id": "a\ufffeb"}, {"id": "invalid"}),
    ],
)
def test_vt09_values_of_known_attributes(door: VngDoor, members: dict[str, Any], found: dict[str, str] | None) -> None:
    answer = door.publish(an_event(**members))
    assert answer.status == 200 if found is None else params(answer) == found


def test_the_lower_case_reference_is_read_as_the_known_attribute(door: VngDoor) -> None:
    answer = door.publish(an_event(subscriberreference="abc"))
    assert (answer.status, answer.json["subscriberReference"]) == (200, "abc")
    assert "subscriberreference" not in answer.json


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("application/cloudevents+json", 200),
        ("application/CloudEvents+JSON; charset=UTF-8", 200),
        ("application/json", 200),
        ("application/cloudevents-batch+json", 415),
        ("application/cloudevents+json; charset=utf-16", 415),
        ("application/cloudevents+avro", 415),
        ("text/plain", 415),
        ("", 415),
    ],
)
def test_vt10_content_types(door: VngDoor, content_type: str, status: int) -> None:
    answer = door.publish(an_event(), content_type)
    assert answer.status == status
    assert answer.headers["api-version"] == "0.1.5"


def test_vt10_an_event_in_binary_form_is_not_read(door: VngDoor) -> None:
    binary = {"ce_id": "1", "ce_source": "/x", "ce_type": "t", "ce_specversion": "1.0"}
    assert door.publish({"zaak": 1}, "application/json", **binary).status == 415


def test_vt10_without_the_switch_plain_json_is_not_read(tmp_path: Path) -> None:
    with an_api(tmp_path, vng={"json_content_type": False}) as api:
        door = VngDoor(api)
        door.domain()
        assert door.publish(an_event(), "application/json").status == 415
        assert door.publish(an_event()).status == 200


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'"text"',
        b'{"id": "1", "id": "2"}',
        b'{"data": {"a": 1, "a": 2}}',
        b"\xff\xfe{}",
        b'{"id": "\xff"}',
        b'{"id": "\\ud800"}',
        b"\xef\xbb\xbf{}",
        b'{"data": ' + b"[" * 1000 + b"]" * 1000 + b"}",
        b'{"data": 1e999999}]',
    ],
)
def test_vt11_what_is_no_event_at_all(door: VngDoor, body: bytes) -> None:
    assert params(door.publish(body)) == {"body": "parse_error"}


def test_vt11_what_is_too_large(door: VngDoor) -> None:
    answer = door.publish(an_event(data="x" * 100_000))
    assert (answer.status, answer.json["code"]) == (413, "too_large")


def test_vt12_an_event_that_comes_again_is_answered_and_not_stored_again(door: VngDoor, api: ApiProcess) -> None:
    event = an_event()
    assert [door.publish(event).status for _ in range(3)] == [200, 200, 200]
    assert stored(api, event) == [event]
    again = door.publish({**event, "data": {"zaak": 2}})
    assert (again.status, again.json["code"]) == (409, "conflict")
    assert stored(api, event) == [event]


def test_the_payload_stays_as_it_was_written(door: VngDoor, api: ApiProcess) -> None:
    event = an_event(data=...)
    body = json.dumps(event).encode()[:-1] + b', "data": {"a" : 1.50, "b": [ ]}}'
    answer = door.publish(body)
    assert (answer.status, answer.body) == (200, body)
    packed = an_event(data=..., data_base64=base64.b64encode(b"\x00\xff").decode())
    assert door.publish(packed).json == packed
    assert stored(api, packed) == [packed]


def test_settings_that_are_stricter_or_more_lenient(tmp_path: Path) -> None:
    with an_api(tmp_path, vng={"source_must_be_urn": True, "allow_dataref_only": True}) as api:
        door = VngDoor(api)
        door.domain()
        assert params(door.publish(an_event(source="/zaken"))) == {"source": "invalid"}
        assert door.publish(an_event(data=..., dataref="https://zaken.example/1")).status == 200
        assert params(door.publish(an_event(data=...))) == {"nonFieldErrors": "xor"}


def test_other_methods_and_what_is_not_accepted(door: VngDoor) -> None:
    answer = door.call("GET", "/events")
    assert (answer.status, answer.headers["allow"]) == (405, "POST, OPTIONS")
    assert door.publish(an_event(), accept="text/html").status == 406
    assert door.publish(an_event(), accept="text/html, */*;q=0.1").status == 200


def test_another_service_may_ask_whether_it_may_deliver_here(tmp_path: Path) -> None:
    with an_api(tmp_path, ingest={"webhook_origins": ["ns1.example"]}) as api:
        door = VngDoor(api)
        known = door.call("OPTIONS", "/events", headers={"webhook-request-origin": "ns1.example"})
        assert (known.status, known.headers["webhook-allowed-origin"]) == (200, "ns1.example")
        unknown = door.call("OPTIONS", "/events", headers={"webhook-request-origin": "elders.example"})
        assert "webhook-allowed-origin" not in unknown.headers


values = st.sampled_from([None, "", "x", 5, True, [], "1.0", "Integer", "application/json", "a\nb", "2022-03-16T15:29:30Z"])
KNOWN = ("id", "source", "time", "sequence", "sequencetype", "data_base64", "dataref", "datacontenttype", "subject", "data")
MORE = ("Type", "extra", "subscription", "subscriberreference", "specversion", "vertrouwelijkheid", "Vertrouwelijkheid")
attributes = st.sampled_from((*KNOWN, *MORE))


@given(st.dictionaries(attributes, values, max_size=4), st.sets(st.sampled_from(["id", "domain", "data", "type"]), max_size=1))
def test_the_quick_look_never_passes_what_has_faults(changed: dict[str, Any], missing: set[str]) -> None:
    members = {name: value for name, value in {**an_event(), **changed}.items() if name not in missing}
    allowed, choices = frozenset(["vertrouwelijkheid"]), EventChoices()
    if is_sound(members, allowed, choices):
        assert not list(faults_of(members, allowed, choices))


def test_the_quick_look_passes_the_usual_event() -> None:
    assert is_sound(an_event(vertrouwelijkheid="openbaar"), frozenset(["vertrouwelijkheid"]), EventChoices())
