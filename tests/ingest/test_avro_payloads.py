"""What becomes of payloads on a topic with Avro schemas."""

from __future__ import annotations

import json

import msgspec
import pytest

from tests.builders import an_event
from tidings.errors import InvalidEvent, Malformed
from tidings.events.avro.schema import compiled
from tidings.events.model import Event
from tidings.ingest.avro_payloads import AdmittedAvro, version_in
from tidings.registry.avro import AvroPayload, AvroVersion

ONE = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]})
TWO = json.dumps(
    {
        "type": "record",
        "name": "R",
        "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": ["null", "string"], "default": None}],
    }
)
ADMITTED = AdmittedAvro(AvroPayload(versions=(AvroVersion(1, ONE), AvroVersion(2, TWO))))


def event(data: bytes | None, kind: str = "application/json", **more: object) -> Event:
    made = an_event(data)
    return msgspec.structs.replace(made, attributes={**made.attributes, "datacontenttype": kind}, **more)


def admitted(one: Event, number: int | None = None) -> Event:
    (found,) = ADMITTED.admitted([one], number)
    return found


def test_avro_is_stored_byte_for_byte_and_names_its_schema() -> None:
    for kind in ("avro/binary", "AVRO/Binary; charset=x", "application/avro"):
        found = admitted(event(b"\x0a\x00", kind))
        assert (found.data, found.avro, found.datacontenttype) == (b"\x0a\x00", compiled(TWO).fingerprint, kind)


def test_json_becomes_avro_of_the_version_that_is_asked_for() -> None:
    newest, first = admitted(event(b'{"a":5,"b":"x"}')), admitted(event(b'{"a":5,"b":"x"}'), 1)
    assert (newest.data, newest.avro, newest.datacontenttype) == (b"\x0a\x02\x02x", compiled(TWO).fingerprint, "avro/binary")
    assert (first.data, first.avro) == (b"\x0a", compiled(ONE).fingerprint)


def test_avro_json_names_its_branches() -> None:
    assert admitted(event(b'{"a":5,"b":{"string":"x"}}', "avro/json")).data == b"\x0a\x02\x02x"


def test_what_a_door_has_made_is_checked_by_the_schema_that_it_names() -> None:
    made = event(b"\x0a", "avro/binary", avro=compiled(ONE).fingerprint)
    assert admitted(made) == made
    for wrong, words in ((b"\x0a\x00", "ends at byte 1"), (b"", "ends inside a number")):
        with pytest.raises(InvalidEvent, match=words):
            admitted(event(wrong, "avro/binary", avro=compiled(ONE).fingerprint))
    with pytest.raises(InvalidEvent, match="not one of the topic's"):
        admitted(event(b"\x0a", "avro/binary", avro="0123456789abcdef"))


@pytest.mark.parametrize(
    ("given", "pointer", "words"),
    [
        (event(b'{"a":"x"}'), "/a", "expected a number, found a text"),
        (event(b"{"), None, "JSON"),
        (event(b"\x0a\x04", "avro/binary"), "/b", "no branch 2"),
        (event(None), None, "expects data"),
        (event(b"hello", "text/plain"), None, "takes Avro or JSON"),
        (event(b"\x0a\x00", "application/json", base64=True), None, "takes Avro or JSON"),
    ],
)
def test_what_does_not_fit_is_told_with_its_place(given: Event, pointer: str | None, words: str) -> None:
    with pytest.raises(InvalidEvent) as refused:
        ADMITTED.admitted([event(b'{"a":1}'), given], None)
    (fault,) = refused.value.faults
    assert (fault.index, fault.attribute, fault.pointer) == (1, "data", pointer)
    assert words in fault.detail


def test_an_unknown_version_is_refused() -> None:
    with pytest.raises(Malformed, match="no such schema version"):
        ADMITTED.version(3)
    assert version_in([(b"schema-version", b" 2 ")]) == 2
    assert version_in([(b"content-type", b"a")]) is None
    for wrong in (b"two", b"-1", b"", b"9" * 400):
        with pytest.raises(Malformed, match="not a schema version"):
            version_in([(b"schema-version", wrong)])
