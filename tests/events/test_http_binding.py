"""The HTTP binding, table by table (CT-05 to CT-09, CT-11; CEJ, CEH and CE-06, CE-07 rows)."""

from __future__ import annotations

import base64
import json

import pytest

from tests.builders import an_event
from tests.events.requests import LIMITS, REQUIRED, an_object, batch, binary, content_type, only_fault, raw, structured
from tidings.errors import InvalidEvent, Malformed, TooLarge, UnsupportedFormat
from tidings.events.http_binding import (
    Limits,
    decode,
    encode_batch,
    encode_binary,
    encode_structured,
    is_cloudevent,
    structured_json,
    structured_line,
)


def with_data(text: str, **members: object) -> bytes:
    """An event whose `data` is this very text."""
    return an_object(**members)[:-1] + f',"data":{text}}}'.encode()


# CT-05: payloads of the structured form


def test_data_null_is_a_payload_and_no_data_is_none() -> None:
    assert structured(with_data("null")).data == b"null"
    assert structured(an_object()).data is None
    assert structured(an_object(data_base64=None)).data is None
    assert structured(an_object(data=1, data_base64=None)).data == b"1"


def test_base64_is_decoded_and_remembered() -> None:
    event = structured(an_object(data_base64="aGVsbG8="))
    assert (event.data, event.base64) == (b"hello", True)


@pytest.mark.parametrize(
    ("members", "attribute", "code"),
    [
        ({"data": 1, "data_base64": "aGVsbG8="}, "data", "conflict"),
        ({"data": None, "data_base64": "aGVsbG8="}, "data", "conflict"),
        ({"data_base64": "a$b="}, "data_base64", "bad-format"),
        ({"data_base64": "abc"}, "data_base64", "bad-format"),
        ({"data_base64": "aGVs\nbG8="}, "data_base64", "bad-format"),
        ({"data_base64": "é"}, "data_base64", "bad-format"),
        ({"data_base64": 5}, "data_base64", "bad-type"),
        ({"data": {"a": 1}, "datacontenttype": "text/plain"}, "data", "bad-type"),
        ({"data": "€", "datacontenttype": "text/plain; charset=iso-8859-1"}, "data", "bad-charset"),
        ({"data": "x", "datacontenttype": "text/plain; charset=klingon"}, "data", "bad-charset"),
    ],
)
def test_a_bad_payload_is_refused(members: dict[str, object], attribute: str, code: str) -> None:
    with pytest.raises(InvalidEvent) as refused:
        structured(an_object(**members))
    assert (only_fault(refused).attribute, only_fault(refused).code) == (attribute, code)


@pytest.mark.parametrize(
    ("type", "data", "stored"),
    [
        (None, '"text"', b'"text"'),
        ("application/json", '"{}"', b'"{}"'),
        ("text/json", "[1]", b"[1]"),
        ("Application/Vnd.X+JSON; charset=utf-8", "[1]", b"[1]"),
        ("text/plain", '"h\\u00e9"', "hé".encode()),
        ("text/plain; charset=ISO-8859-1", '"h\\u00e9"', b"h\xe9"),
        ("application/xml", '"<a/>"', b"<a/>"),
        ("application/octet-stream", '""', b""),
    ],
)
def test_the_content_type_says_whether_data_is_json(type: str | None, data: str, stored: bytes) -> None:
    assert structured(with_data(data, datacontenttype=type)).data == stored


# CT-09: the payload keeps its own text


@pytest.mark.parametrize(
    "text", ["1.0", "1e400", "12345678901234567890", "-0.0", '{"b":1,  "a":\n[1.50]}', '"\\u0041\\/"', "[0.1000]", "{}"]
)
def test_the_text_of_a_payload_survives_every_form(text: str) -> None:
    event = structured(with_data(text))
    assert event.data == text.encode()
    assert structured(encode_structured(event)[1]).data == text.encode()
    assert encode_binary(event)[1] == text.encode()
    assert batch(encode_batch([event, event])[1])[1].data == text.encode()


def test_escaped_member_names_mean_the_same() -> None:
    assert structured(an_object()[:-1] + b',"d\\u0061ta":[1.0]}').data == b"[1.0]"


@pytest.mark.parametrize(
    "body",
    [
        with_data("NaN"),
        with_data("Infinity"),
        with_data('{"a":1,"a":2}'),
        with_data('"\\ud800"'),
        with_data("[" * 129 + "]" * 129),
        b"\xef\xbb\xbf" + an_object(),
        an_object() + b"x",
        an_object()[:-1] + b',"id":"2"}',
        an_object()[:-1] + b',"ext":"\xff"}',
        b"[]",
        b'"event"',
        b"",
    ],
    ids=lambda body: repr(body)[-30:],
)
def test_what_is_not_an_event_in_json_is_malformed(body: bytes) -> None:
    with pytest.raises(Malformed):
        structured(body)


# CT-06 and the rest of the binary form


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"Euro%20%e2%82%ac", "Euro €"),
        (b"Euro%20%E2%82%AC%20%F0%9F%98%80", "Euro € \U0001f600"),
        (b'"a \\"b\\""', 'a "b"'),
        (b'"a%20b"', "a b"),
        (b"100%", "100%"),
        (b"%zz%4", "%zz%4"),
        (b"%41%2525", "A%25"),
        (b'raw spaces and "quotes"', 'raw spaces and "quotes"'),
        (b'"a" and "b"', '"a" and "b"'),
        ("hé".encode(), "hé"),
        (b"  padded\t", "padded"),
        (b'{"othervalue": 5}', '{"othervalue": 5}'),
    ],
)
def test_header_values_are_unquoted_and_percent_decoded_once(value: bytes, text: str) -> None:
    assert binary(subject=value).attributes["subject"] == text


@pytest.mark.parametrize("value", [b"%C0%A0", b"\xff", b"a%0Ab", b"%ED%A0%80", b"%00", b"a\nb"])
def test_header_values_that_are_no_text_are_refused(value: bytes) -> None:
    with pytest.raises(InvalidEvent) as refused:
        binary(subject=value)
    assert (only_fault(refused).attribute, only_fault(refused).code) == ("subject", "bad-character")


def test_header_names_have_any_case_and_values_stay_text() -> None:
    headers = [(f"Ce-{name.title()}".encode(), value.encode()) for name, value in {**REQUIRED, "number": "5"}.items()]
    (event,) = decode([*headers, (b"Content-Type", b"text/plain")], b"hi", LIMITS)
    assert event.attributes == {**REQUIRED, "number": "5", "datacontenttype": "text/plain"}


@pytest.mark.parametrize(
    ("extra", "attribute", "code"),
    [
        ((b"ce-datacontenttype", b"text/plain"), "datacontenttype", "bad-name"),
        ((b"ce-id", b"2"), "id", "duplicate"),
        ((b"CE-ID", b"1"), "id", "duplicate"),
        ((b"ce-data", b"1"), "data", "bad-name"),
        ((b"ce-my_ext", b"1"), "my_ext", "bad-name"),
        ((b"ce-", b"1"), "", "bad-name"),
        ((b"content-type", b"nonsense"), "datacontenttype", "bad-format"),
    ],
)
def test_a_bad_header_is_refused(extra: tuple[bytes, bytes], attribute: str, code: str) -> None:
    headers = raw([(f"ce-{name}", value) for name, value in REQUIRED.items()])
    with pytest.raises(InvalidEvent) as refused:
        decode([*headers, extra], b"", LIMITS)
    assert (only_fault(refused).attribute, only_fault(refused).code) == (attribute, code)


def test_two_different_content_types_are_refused() -> None:
    with pytest.raises(Malformed, match="two different content types"):
        decode([*content_type("text/plain"), *content_type("application/json")], b"", LIMITS)


def test_a_binary_body_is_never_judged() -> None:
    assert binary(b'{"broken":').data == b'{"broken":'
    assert binary(b"").data is None


def test_a_binary_event_without_content_type_is_bytes_without_type() -> None:
    event = binary(b"[1]", type=None)
    assert (event.datacontenttype, event.data, event.base64) == (None, b"[1]", True)
    assert b'"data_base64":"WzFd"' in structured_json(event)


# CT-07: which form a request has

STRUCTURED_TYPES = [
    "application/cloudevents+json",
    "APPLICATION/CloudEvents+JSON; charset=UTF-8",
    'application/cloudevents+json;charset="utf-8"',
    "application/cloudevents+json ; profile=x",
]
UNSUPPORTED_TYPES = [
    "application/cloudevents",
    "application/cloudevents+xml",
    "application/cloudevents+avro",
    "application/cloudevents+json; charset=iso-8859-1",
    "application/cloudevents-batch",
    "application/cloudevents-batch+protobuf",
    "application/cloudevents-batch+json; charset=utf-16",
]


@pytest.mark.parametrize("type", STRUCTURED_TYPES)
def test_a_structured_content_type_in_any_spelling(type: str) -> None:
    assert decode(content_type(type), an_object(), LIMITS)[0].id == "1"


@pytest.mark.parametrize("type", UNSUPPORTED_TYPES)
def test_other_formats_of_events_are_unsupported(type: str) -> None:
    with pytest.raises(UnsupportedFormat):
        decode(content_type(type), an_object(), LIMITS)


def test_plain_json_is_no_cloudevent() -> None:
    with pytest.raises(InvalidEvent, match="no CloudEvent") as refused:
        decode(content_type("application/json"), b'{"a":1}', LIMITS)
    assert only_fault(refused).attribute == "specversion"


def test_the_body_of_a_structured_event_wins_over_headers() -> None:
    headers = [*content_type("application/cloudevents+json"), (b"ce-id", b"2"), (b"ce-id", b"3")]
    assert decode(headers, an_object(), LIMITS)[0].id == "1"


@pytest.mark.parametrize(
    ("headers", "is_one"),
    [
        ([], False),
        (content_type("application/json"), False),
        (content_type("Application/CloudEvents+xml"), True),
        (content_type("application/cloudevents-batch+json"), True),
        ([(b"CE-Id", b"1")], True),
        ([(b"x-ce-id", b"1")], False),
    ],
)
def test_a_request_says_whether_it_is_a_cloudevent(headers: list[tuple[bytes, bytes]], is_one: bool) -> None:
    assert is_cloudevent(headers) is is_one


# CT-08: batches


def test_a_batch_may_be_empty_or_have_many() -> None:
    assert batch(b"[]") == []
    assert [event.id for event in batch(b"[%b , %b]" % (an_object(id="a"), an_object(id="b")))] == ["a", "b"]


def test_one_bad_event_refuses_the_batch_and_every_fault_has_its_index() -> None:
    bodies = [an_object(), an_object(id=""), b"7", an_object(data_base64="!"), an_object()[:-1] + b',"x":1,"x":2}']
    with pytest.raises(InvalidEvent) as refused:
        batch(b"[%b]" % b",".join(bodies))
    assert [(fault.index, fault.attribute) for fault in refused.value.faults] == [
        (1, "id"),
        (2, ""),
        (3, "data_base64"),
        (4, ""),
    ]


@pytest.mark.parametrize(
    "body", [b"{}", b"", b"[", b"[1,", b"[" * 100_000, an_object(), b"\xef\xbb\xbf[]"], ids=lambda body: repr(body)[:20]
)
def test_a_batch_that_is_no_array_is_malformed(body: bytes) -> None:
    with pytest.raises(Malformed):
        batch(body)


def test_a_batch_has_limits() -> None:
    small = Limits(max_event_bytes=200, batch_events=3, batch_bytes=500)
    one = an_object()
    assert len(batch(b"[%b]" % b",".join([one] * 3), small)) == 3
    with pytest.raises(TooLarge, match="too many events"):
        batch(b"[%b]" % b",".join([one] * 4), small)
    with pytest.raises(TooLarge, match="a batch of 501 bytes"):
        batch(b"[]".ljust(501), small)
    with pytest.raises(TooLarge, match="at event 1"):
        batch(b"[%b,%b]" % (one, an_object(ext="x" * 200)), small)


def test_the_default_batch_holds_a_thousand() -> None:
    one = an_object()
    assert len(batch(b"[%b]" % b",".join([one] * 1000))) == 1000
    with pytest.raises(TooLarge):
        batch(b"[%b]" % b",".join([one] * 1001))


def test_a_million_tiny_elements_are_refused_at_the_first() -> None:
    with pytest.raises(Malformed, match="an event is a JSON object at event 0"):
        batch(b"[%b]" % b",".join([b"0"] * 1_000_000))


# CT-11: the size of an event as received


def test_a_structured_event_may_have_65536_bytes() -> None:
    body = an_object(data="x")
    fitting = an_object(data="x" * (65_536 - len(body) + 1))
    assert len(fitting) == 65_536
    assert structured(fitting).id == "1"
    with pytest.raises(TooLarge, match="65537"):
        structured(fitting + b" ")


def test_a_binary_event_counts_its_body_and_its_ce_headers() -> None:
    used = sum(len(f"ce-{name}{value}") for name, value in REQUIRED.items())
    assert binary(b"x" * (65_536 - used)).id == "1"
    with pytest.raises(TooLarge, match="65537"):
        binary(b"x" * (65_537 - used))


# CE-07: what travels beside the event


def test_only_allowed_transport_headers_are_kept() -> None:
    headers = [
        *content_type("application/cloudevents+json"),
        (b"TraceParent", b"00-ab"),
        (b"tracestate", b"a=1"),
        (b"tracestate", b"b=2"),
        (b"user-agent", b"foo"),
        (b"baggage", b"bad\x00"),
    ]
    (event,) = decode(headers, an_object(), LIMITS)
    assert event.transport == {"traceparent": "00-ab", "tracestate": "a=1,b=2"}
    (other,) = decode(headers, an_object(), LIMITS.keeping(["User-Agent"]))
    assert other.transport == {"user-agent": "foo"}
    assert ("traceparent", "00-ab") in encode_binary(event)[0]
    assert ("traceparent", "00-ab") in encode_structured(event)[0]


# Out


def test_the_structured_form_is_compact_and_exact() -> None:
    headers, body = encode_structured(an_event(b'{"a": 1.0}', number=5, flag=True, subject="é"))
    assert headers == [("content-type", "application/cloudevents+json; charset=utf-8")]
    required = '{"specversion":"1.0","id":"1","source":"/orders","type":"order.created"'
    assert body.decode() == required + ',"number":5,"flag":true,"subject":"é","data":{"a": 1.0}}'


def test_the_batch_form_has_its_own_content_type() -> None:
    assert encode_batch([]) == ([("content-type", "application/cloudevents-batch+json; charset=utf-8")], b"[]")


def test_the_binary_form_writes_values_as_headers_may_carry_them() -> None:
    headers, body = encode_binary(
        an_event(b"x", datacontenttype="text/plain", subject='Euro € 100% "a"~', flag=False, number=-1)
    )
    assert dict(headers) == {
        "content-type": "text/plain",
        "ce-specversion": "1.0",
        "ce-id": "1",
        "ce-source": "/orders",
        "ce-type": "order.created",
        "ce-subject": "Euro%20%E2%82%AC%20100%25%20%22a%22~",
        "ce-flag": "false",
        "ce-number": "-1",
    }
    assert body == b"x"


@pytest.mark.parametrize(
    ("data", "base64", "sent"),
    [(b"1", False, "application/json"), (b"1", True, None), (None, False, None)],
)
def test_the_implied_json_type_is_said_where_it_is_no_longer_implied(
    data: bytes | None, base64: bool, sent: str | None
) -> None:
    headers, _ = encode_binary(an_event(data, base64=base64))
    assert dict(headers).get("content-type") == sent


@pytest.mark.parametrize(
    ("type", "data", "member"),
    [
        ("application/json", b' {"a":1} ', '"data":{"a":1}'),
        ("application/json", b"", '"data_base64":""'),
        ("application/json", b"{", None),
        ("application/json", b'{"a":1,"a":2}', None),
        ("application/json", b'"\xff"', None),
        ("application/x+json", b"[1]", '"data":[1]'),
        ("text/plain", b"a\nb", '"data":"a\\nb"'),
        ("text/plain", b"\xe9", None),
        ("text/plain; charset=latin1", b"\xe9", '"data":"é"'),
        ("text/plain; charset=klingon", b"a", None),
        ("image/svg+xml", b"<a/>", '"data":"<a/>"'),
        ("application/octet-stream", b"abc", None),
    ],
)
def test_bytes_take_the_json_form_that_keeps_them(type: str, data: bytes, member: str | None) -> None:
    body = structured_json(an_event(data, datacontenttype=type))
    expected = member if member is not None else f'"data_base64":"{base64.b64encode(data).decode()}"'
    assert body.decode().endswith(f",{expected}}}")


def test_a_payload_that_came_as_base64_leaves_as_base64() -> None:
    event = structured(an_object(datacontenttype="application/json", data_base64="WzFd"))
    assert json.loads(structured_json(event))["data_base64"] == "WzFd"


def test_a_line_has_no_line_breaks() -> None:
    line = structured_line(an_event(b'{\r\n  "a": "b\\nc"\n}'))
    assert b"\n" not in line and b"\r" not in line
    assert json.loads(line)["data"] == {"a": "b\nc"}
