"""Attribute rules CE-01 to CE-04 and CE-08 (CT-03, CT-04)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import an_event
from tests.events.requests import REQUIRED, an_object, only_fault, structured
from tidings.errors import InvalidEvent
from tidings.events.attribute_rules import checked

REFUSED = [
    ("id", "", "empty"),
    ("id", 5, "bad-type"),
    ("source", "", "empty"),
    ("type", "", "empty"),
    ("type", True, "bad-type"),
    ("specversion", "0.3", "bad-version"),
    ("specversion", "1.1", "bad-version"),
    ("specversion", 1.0, "bad-type"),
    ("subject", "", "empty"),
    ("subject", ["a"], "bad-type"),
    ("My_Ext", "x", "bad-name"),
    ("ext-a", "x", "bad-name"),
    ("é", "x", "bad-name"),
    ("", "x", "bad-name"),
    ("a" * 129, "x", "bad-name"),
    ("ext", 1.5, "bad-type"),
    ("ext", 5.0, "bad-type"),
    ("ext", {}, "bad-type"),
    ("ext", [1], "bad-type"),
    ("ext", 2**31, "out-of-range"),
    ("ext", -(2**31) - 1, "out-of-range"),
    ("ext", 10**30, "out-of-range"),
    ("ext", "a\nb", "bad-character"),
    ("ext", "\x00", "bad-character"),
    ("ext", "\x7f", "bad-character"),
    ("ext", "\x85", "bad-character"),
    ("ext", "\ufdd0", "bad-character"),
    ("ext", "\uffff", "bad-character"),
    ("ext", "\U0010fffe", "bad-character"),
    ("id", "a\tb", "bad-character"),
    ("datacontenttype", "json", "bad-format"),
    ("datacontenttype", "", "empty"),
    ("datacontenttype", "text/plain; charset", "bad-format"),
    ("datacontenttype", {}, "bad-type"),
    ("dataschema", "/relative", "bad-format"),
    ("dataschema", "", "empty"),
    ("dataschema", 7, "bad-type"),
]

ACCEPTED = [
    ("ext", ""),
    ("ext", 0),
    ("ext", -(2**31)),
    ("ext", 2**31 - 1),
    ("ext", False),
    ("ext", "Euro € 😀"),
    ("ext", "\u2028"),
    ("a" * 128, "x"),
    ("123", "x"),
    ("datacontenttype", 'multipart/mixed; boundary="a b"; x=y'),
    ("datacontenttype", "application/vnd.x+json;charset=UTF-8"),
    ("dataschema", "https://example.com/schemas/order.json#/$defs/a"),
    ("dataschema", "urn:example:order"),
]


@pytest.mark.parametrize(("name", "value", "code"), REFUSED)
def test_a_bad_attribute_is_refused_by_name(name: str, value: Any, code: str) -> None:
    with pytest.raises(InvalidEvent) as refused:
        structured(an_object(**{name: value}))
    fault = only_fault(refused)
    assert (fault.index, fault.attribute.rstrip("…"), fault.code) == (0, name[:128], code)


@pytest.mark.parametrize(("name", "value"), ACCEPTED)
def test_an_unusual_but_legal_attribute_is_kept_as_it_came(name: str, value: Any) -> None:
    event = structured(an_object(**{name: value}))
    assert event.attributes[name] == value
    assert type(event.attributes[name]) is type(value)


@pytest.mark.parametrize("name", ["id", "source", "specversion", "type"])
def test_a_missing_required_attribute_is_named(name: str) -> None:
    with pytest.raises(InvalidEvent) as refused:
        checked({key: value for key, value in REQUIRED.items() if key != name})
    assert (only_fault(refused).attribute, only_fault(refused).code) == (name, "missing")


@pytest.mark.parametrize("name", ["id", "source", "specversion", "type"])
def test_null_for_a_required_attribute_is_missing(name: str) -> None:
    with pytest.raises(InvalidEvent) as refused:
        structured(an_object(**{name: None}))
    assert (only_fault(refused).attribute, only_fault(refused).code) == (name, "missing")


def test_every_fault_of_an_event_is_told_at_once() -> None:
    with pytest.raises(InvalidEvent) as refused:
        checked({"specversion": "2.0", "id": "", "Bad": 1.5, "type": "t"})
    assert [fault.attribute for fault in refused.value.faults] == ["specversion", "id", "Bad", "source"]


def test_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(InvalidEvent) as refused:
        checked({**REQUIRED, "ext": "a\ud800"})
    assert "U+D800" in only_fault(refused).detail


TIMES = {
    "2018-04-05T03:56:24Z": True,
    "2018-04-05t03:56:24z": True,
    "2018-04-05T03:56:24.123456789Z": True,
    "2016-12-31T23:59:60Z": True,
    "2018-04-05T03:56:24+01:30": True,
    "2018-04-05T03:56:24-23:59": True,
    "2020-02-29T00:00:00Z": True,
    "0000-02-29T00:00:00Z": True,
    "2018-04-05": False,
    "2018-04-05 03:56:24Z": False,
    "2018-04-05T03:56:24": False,
    "2018-04-05T03:56Z": False,
    "2018-04-05T03:56:24,5Z": False,
    "2018-04-05T03:56:24.Z": False,
    "2018-04-05T24:00:00Z": False,
    "2018-04-05T03:56:61Z": False,
    "2018-04-05T03:56:24+0100": False,
    "2018-04-05T03:56:24+24:00": False,
    "2018-13-05T03:56:24Z": False,
    "2018-04-31T03:56:24Z": False,
    "2019-02-29T03:56:24Z": False,
    "20180405T035624Z": False,
    "٢٠١٨-04-05T03:56:24Z": False,
    " 2018-04-05T03:56:24Z": False,
}


@pytest.mark.parametrize(("text", "good"), TIMES.items())
def test_time_is_rfc_3339_and_nothing_else(text: str, good: bool) -> None:
    if good:
        assert structured(an_object(time=text)).attributes["time"] == text
    else:
        with pytest.raises(InvalidEvent) as refused:
            structured(an_object(time=text))
        assert only_fault(refused).attribute == "time"


SOURCES = {
    "/mycontext/subcontext": True,
    "https://github.com/cloudevents": True,
    "mailto:cncf-wg-serverless@lists.cncf.io": True,
    "urn:uuid:6e8bc430-9c3a-11d9-9669-0800200c9a66": True,
    "//github.com/cloudevents/x.yaml": True,
    "cloudevents/spec/pull/123": True,
    "1-555-123-4567": True,
    "https://user:pw@[2001:db8::1]:8080/a?b=c#d": True,
    "#part": True,
    "?q": True,
    "a%20b": True,
    "tag:example.com,2020:x": True,
    "a b": False,
    "a%2": False,
    "a%zz": False,
    "1a:b": False,
    "http://[zz]/": False,
    "http://a:port/": False,
    "/é": False,
    "<a>": False,
    "a#b#c": False,
    "{x}": False,
    "a\\b": False,
}


@pytest.mark.parametrize(("text", "good"), SOURCES.items())
def test_source_is_a_uri_reference(text: str, good: bool) -> None:
    if good:
        assert an_event(source=text).source == text
    else:
        with pytest.raises(InvalidEvent) as refused:
            an_event(source=text)
        assert (only_fault(refused).attribute, only_fault(refused).code) == ("source", "bad-format")


@pytest.mark.parametrize(
    "hostile", ["a" * 60_000 + " ", "http://" + "a:" * 30_000 + " ", "%41" * 20_000 + "%", "x/" * 30_000 + "\\"]
)
def test_a_long_bad_source_is_refused_all_the_same(hostile: str) -> None:
    with pytest.raises(InvalidEvent):
        an_event(source=hostile)


def test_null_attributes_are_unset_and_order_is_kept() -> None:
    event = structured(b'{"type":"t","subject":null,"id":"1","time":null,"source":"/s","specversion":"1.0"}')
    assert list(event.attributes) == ["type", "id", "source", "specversion"]
