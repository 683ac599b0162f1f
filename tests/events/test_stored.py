"""The stored form is flat, plain and compact."""

from __future__ import annotations

import pytest

from tests.builders import an_event
from tidings.errors import Malformed
from tidings.events.attribute_rules import checked
from tidings.events.stored import event_from, head_of


def test_the_head_is_one_flat_object_in_the_order_of_the_attributes() -> None:
    event = an_event(b"[1]", number=5, flag=True, subject="é")
    assert head_of(event).decode() == (
        '{"specversion":"1.0","id":"1","source":"/orders","type":"order.created","number":5,"flag":true,"subject":"é"}'
    )


def test_what_stands_beside_the_attributes_is_marked_with_a_dollar() -> None:
    event = checked(an_event().attributes, b"x", base64=True, transport={"traceparent": "00-ab"})
    head = head_of(event)
    assert head.endswith(b',"$headers":{"traceparent":"00-ab"},"$base64":true}')
    assert event_from(head, b"x") == event


def test_a_damaged_head_is_an_error_of_ours() -> None:
    for head in (b"", b"[]", b'{"id":"\xff"}'):
        with pytest.raises(Malformed, match="stored event"):
            event_from(head, None)
