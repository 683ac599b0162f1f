"""Bytes to events and checkpoints."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.client.feeds.discovery import V1, V2
from tidings.client.feeds.lines import Checkpoint, FeedEvent, Lines
from tidings.errors import BadLine, LineTooLong


def said(*chunks: bytes, limit: int = 1 << 20, version: int = V2) -> list[Any]:
    """Events as their data, checkpoints as themselves, with their partitions."""
    lines = Lines("7", limit, version=version)
    found = [one for chunk in chunks for one in lines.feed(chunk)] + lines.close()
    return [(one.partition, one.data) if isinstance(one, FeedEvent) else one for one in found]


def test_events_and_checkpoints_come_in_their_order() -> None:
    assert said(b'{"data":{"a":1}}\n{"cursor":"5"}\n{"data":"text"}\n{"cursor":"6"}\n') == [
        ("7", {"a": 1}),
        Checkpoint("7", "5"),
        ("7", "text"),
        Checkpoint("7", "6"),
    ]


def test_ft31_blank_lines_and_unknown_commands_say_nothing() -> None:
    body = b'\n\r\n  \n{"ping":1}\n["new"]\n3\n{"data":{}}\n{"cursor":"5","extra":[1]}\n{"cursor":""}\n{"cursor":null}\n'
    assert said(body) == [("7", {}), Checkpoint("7", "5")]


def test_a_line_with_both_is_an_event_and_then_a_checkpoint() -> None:
    assert said(b'{"cursor":"5","data":{}}\n') == [("7", {}), Checkpoint("7", "5")]


def test_lines_end_at_lf_alone() -> None:
    text = json.dumps({"data": {"t": "a\u2028b\u0085c\rd"}}, ensure_ascii=False).encode()
    assert said(text + b"\r\n") == [("7", {"t": "a\u2028b\u0085c\rd"})]


def test_version_1_names_partitions_and_has_headers() -> None:
    lines = Lines("0").feed(b'{"partition":2,"headers":{"ce_id":"x"},"data":{}}\n{"partition":2,"cursor":"9"}\n')
    assert isinstance(lines[0], FeedEvent)
    assert (lines[0].partition, lines[0].headers, lines[1]) == ("2", {"ce_id": "x"}, Checkpoint("2", "9"))


@pytest.mark.parametrize("data", ["null", "[1]", "3", "true", "1.5"])
def test_version_2_has_objects_and_strings_only(data: str) -> None:
    with pytest.raises(BadLine):
        said(f'{{"data":{data}}}\n'.encode())


@pytest.mark.parametrize("data", ["[1]", "3", "true", "1.5", "false", "-2", '"text"', "{}"])
def test_in_version_1_every_json_value_is_data(data: str) -> None:
    line = f'{{"partition":7,"data": {data}}}\n{{"partition":7,"cursor":"5"}}\n'.encode()
    assert said(line, version=V1) == [("7", json.loads(data)), Checkpoint("7", "5")]
    assert said(b"\n" + line, version=V1) == [("7", json.loads(data)), Checkpoint("7", "5")]


def test_null_is_no_data_in_version_1_either() -> None:
    with pytest.raises(BadLine, match="null"):
        said(b'{"partition":7,"data":null}\n', version=V1)


DEEP = "[" * 40_000 + "]" * 40_000


@pytest.mark.parametrize(
    "line",
    [
        *("{", '{"data":{}} x', "nonsense", '{"data":{}}{"cursor":"1"}', '{"cursor":5}', "\x00"),
        *('{"cursor":5,"x":', f'{{"data":{{"a":{DEEP}}}}}', f'{{"cursor":"1","x":{DEEP}}}'),
    ],
)
def test_what_is_no_line_is_refused(line: str) -> None:
    with pytest.raises(BadLine):
        said(f"{line}\n".encode())


def test_the_payload_keeps_its_bytes() -> None:
    (event,) = Lines("0").feed(b'{"data": {"n": 1.50, "big": 12345678901234567890123} }\n')
    assert isinstance(event, FeedEvent)
    assert event.raw == b'{"n": 1.50, "big": 12345678901234567890123}'


def test_a_line_that_was_cut_off_is_dropped_and_a_missing_last_lf_forgiven() -> None:
    assert said(b'{"cursor":"5"}\n{"data":{"a"') == [Checkpoint("7", "5")]
    assert said(b'{"cursor":"5"}\n{"data":{"a":1}') == [Checkpoint("7", "5")]
    assert said(b'{"cursor":"5"}') == [Checkpoint("7", "5")]


@pytest.mark.parametrize("ended", [b"", b"\n"])
def test_a_line_without_end_is_refused_before_it_fills_the_memory(ended: bytes) -> None:
    with pytest.raises(LineTooLong):
        said(b'{"data":"', b"x" * 600, b"x" * 600 + ended, limit=1000)
    assert len(said(b'{"data":"', b"x" * 600, b'"}\n', limit=1000)) == 1


@given(
    st.lists(
        st.one_of(
            st.fixed_dictionaries({"data": st.dictionaries(st.text(), st.one_of(st.text(), st.integers(-5, 5)))}),
            st.fixed_dictionaries({"cursor": st.text("abc123", min_size=1)}),
            st.just({}),
        )
    ),
    st.lists(st.integers(1, 40)),
)
def test_it_does_not_matter_how_the_bytes_are_cut(lines: list[dict[str, Any]], cuts: list[int]) -> None:
    body = b"".join(json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in lines)
    chunks, at = [], 0
    for cut in cuts:
        chunks.append(body[at : at + cut])
        at += cut
    chunks.append(body[at:])
    wanted = [("7", one["data"]) if "data" in one else Checkpoint("7", one["cursor"]) for one in lines if one]
    assert said(*chunks) == said(body) == wanted
