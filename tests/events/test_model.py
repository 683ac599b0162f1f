"""Partition keys and their hash (FEED-12)."""

from __future__ import annotations

import pytest

from tests.builders import an_event
from tidings.events.model import key_hash, partition_key

# Computed with `b2sum -l 64`, top bit cleared by hand.
VECTORS = {
    "": 0x64A6A0577479B2B4,
    "1": 0x76FC42039FBA3776,
    "orders": 0x55ACEBE867B47F4D,
    "klant-€": 0x2AB19615860B4491,
}


@pytest.mark.parametrize(("key", "number"), VECTORS.items())
def test_the_hash_of_a_key_never_changes(key: str, number: int) -> None:
    assert key_hash(key) == number


@pytest.mark.parametrize(
    ("attributes", "key"),
    [
        ({}, "1"),
        ({"subject": "s"}, "s"),
        ({"subject": "s", "partitionkey": "p"}, "p"),
        ({"customer": "c"}, "1"),
    ],
)
def test_the_key_is_the_partitionkey_else_the_key_attribute_else_the_id(attributes: dict[str, str], key: str) -> None:
    assert partition_key(an_event(**attributes).attributes) == key


def test_a_topic_may_name_another_key_attribute_of_any_type() -> None:
    assert partition_key(an_event(customer=7, subject="s").attributes, "customer") == "7"
    assert partition_key(an_event(vip=True).attributes, "vip") == "true"
