"""Lines of input as events and requests."""

from __future__ import annotations

import json

import pytest

from tidings.cli.events import MOST_BYTES, MOST_EVENTS, Envelope, Line, PublishBatch, as_event, batches, lines_of, refused_line
from tidings.errors import Malformed

PLAIN = Envelope(type="orders", source="/cli")


def event(text: str, envelope: Envelope = PLAIN) -> dict[str, object]:
    return dict(json.loads(as_event(text, envelope, lambda: "id-1")))


def test_plain_json_gets_an_envelope() -> None:
    assert event('{"total": 5}') == {
        "specversion": "1.0", "id": "id-1", "source": "/cli", "type": "orders",
        "datacontenttype": "application/json", "data": {"total": 5},
    }  # fmt: skip


@pytest.mark.parametrize("data", ['{"a":  1.10}', "12345678901234567890.123", '"\\u00e9"', "[1, 2 ]", "null"])
def test_json_data_is_sent_as_it_was_written(data: str) -> None:
    assert as_event(data, PLAIN, lambda: "1").endswith(f'"data": {data}}}'.encode())


def test_a_cloudevent_is_sent_as_it_is() -> None:
    text = '{"specversion": "1.0", "id": "7", "source": "/s", "type": "t", "data": 1}'
    assert as_event(text, PLAIN, lambda: "1") == text.encode()


def test_other_content_is_a_text() -> None:
    made = event("hello: {", Envelope("t", "/s", subject="x", content_type="text/plain"))
    assert (made["data"], made["datacontenttype"], made["subject"]) == ("hello: {", "text/plain", "x")


def test_what_is_no_json_names_its_line() -> None:
    with pytest.raises(Malformed, match="line 3"):
        list(lines_of(['{"a": 1}\n', "\n", "{broken\n"], PLAIN, lambda: "1"))


def test_blank_lines_are_skipped_but_counted() -> None:
    assert [line.number for line in lines_of(["1\n", "  \n", "2\n"], PLAIN, lambda: "1")] == [1, 3]


def test_requests_are_bounded_in_events_and_bytes() -> None:
    many = list(batches(Line(n, b"{}") for n in range(2 * MOST_EVENTS + 1)))
    assert [len(batch.lines) for batch in many] == [MOST_EVENTS, MOST_EVENTS, 1]
    large = list(batches(Line(n, b"x" * (MOST_BYTES // 2)) for n in range(3)))
    assert [len(batch.lines) for batch in large] == [1, 1, 1]


def test_lines_before_a_bad_one_are_still_sent() -> None:
    requests = batches(lines_of(["1", "2", "{"], PLAIN, lambda: "1"))
    assert len(next(requests).lines) == 2
    with pytest.raises(Malformed):
        next(requests)


def test_a_refusal_is_traced_to_its_line() -> None:
    batch = PublishBatch((Line(4, b"{}"), Line(6, b"{}")))
    assert refused_line(batch, {"errors": [{"index": 1}]}) == 6
    assert refused_line(batch, {"errors": [{"index": 7}]}) is None
    assert refused_line(batch, {}) is None
    assert json.loads(batch.body) == [{}, {}]
