"""What feeds say about themselves, in every spelling."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tidings.client.feeds import Partition
from tidings.client.feeds.discovery import of_version_1, read
from tidings.client.feeds.requests import FeedAddress
from tidings.errors import FeedUnreadable


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("HTTP://Example.ORG:80/Feed/", "http://example.org/Feed"),
        ("https://example.org:443/feed?b=2&a=1", "https://example.org/feed?b=2&a=1"),
        ("https://example.org:444", "https://example.org:444"),
        ("http://user:secret@[::1]:8484/feed//", "http://[::1]:8484/feed"),
    ],
)
def test_an_address_has_one_name(written: str, name: str) -> None:
    assert FeedAddress(written).name == name


def found(**document: Any) -> tuple[Partition, ...]:
    return read(json.dumps(document).encode()).partitions


def test_ft31_ids_and_relations_are_texts_or_numbers_under_both_names() -> None:
    wanted = (Partition("0", closed=True), Partition("1", after="0"), Partition("2", cursors_of=("0", "9")))
    for zero, nine in (("0", "9"), (0, 9)):
        for after, ancestors in (("startsAfterPartition", "cursorFromPartitions"), ("startsAfterParent", "splitFromAncestors")):
            parts = [{"id": zero, "closed": True}, {"id": 1, after: zero}, {"id": "2", ancestors: [zero, nine], "new": {}}]
            assert found(token="t", partitions=parts, flags=[1]) == wanted


SAMPLES = [
    """{ "token": "1",  // change this if the number changes
        "partitions": [ { "id": "0",
            // options of a changing number
        }, ],
        "exactlyOnce": true,  // false if something is published again
    }""",
    """{ "token": "xf3af", "partitions": [ { "id": "0", "closed": true }, { "id": "16000", "startsAfterPartition": "0" } ],
        "exactlyOnce": true, }""",
    """{ "token": "afx53", "partitions": [ { "id": "0", "closed": true }, { "id": "16232", "startsAfterParent": "0" },
        { "id": "24223", "splitFromAncestors": ["24001", "24100"] } ] }""",
    """{ "partitions": [ { "id": "0", "closed": true }, { "id": "1", "startsAfterPartition": "0" },
        { "id": "2", "startsAfterPartition": "0" } ] }""",
    """{ "partitions": [ { "id": "0", }, ] }""",
    """{ "partitions": [ { "id": "1", "cursorFromPartitions": ["0"] }, { "id": "2", "cursorFromPartitions": ["0"] } ] }""",
]
"""The shapes of the discovery documents in the text of version 2."""

UNDERSTOOD = [
    (Partition("0"),),
    (Partition("0", True), Partition("16000", after="0")),
    (Partition("0", True), Partition("16232", after="0"), Partition("24223", cursors_of=("24001", "24100"))),
    (Partition("0", True), Partition("1", after="0"), Partition("2", after="0")),
    (Partition("0"),),
    (Partition("1", cursors_of=("0",)), Partition("2", cursors_of=("0",))),
]


@pytest.mark.parametrize(("sample", "wanted"), list(zip(SAMPLES, UNDERSTOOD, strict=True)))
def test_ft36_every_sample_of_the_text_is_understood(sample: str, wanted: tuple[Partition, ...]) -> None:
    plain = re.sub(r",(\s*[}\]])", r"\1", re.sub(r"//.*", "", sample))
    discovery = read(plain.encode())
    assert discovery.partitions == wanted
    assert discovery.exactly_once is ("exactlyOnce" in sample)


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"[]",
        b"{}",
        b'{"partitions": {}}',
        b'{"partitions": [1]}',
        b'{"partitions": [{"id": null}]}',
        b'{"partitions": [{"id": true}]}',
        b'{"partitions": [{"id": "0"}, {"id": 0}]}',
        b'{"partitions": [{"id": "0", "cursorFromPartitions": "1"}]}',
        b'{"token": [], "partitions": []}',
    ],
)
def test_what_is_no_discovery_is_refused(body: bytes) -> None:
    with pytest.raises(FeedUnreadable):
        read(body)


def test_version_1_has_the_partitions_the_client_assumes() -> None:
    assert [one.id for one in of_version_1(3).partitions] == ["0", "1", "2"]
