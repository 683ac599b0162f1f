"""A batch is what its events are alone, however it is read."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.events.requests import an_object, batch
from tidings.errors import EventFault, InvalidEvent, Malformed, TooLarge
from tidings.events import structured
from tidings.events.json_text import MAX_DEPTH
from tidings.events.limits import Limits
from tidings.events.model import Event

LIMITS = Limits(max_event_bytes=1_500)

plain = [b'"subject":"s"', b'"subject":null', b'"ext":true', b'"time":"2018-04-05T03:56:24Z"', b'"n":7']
bad = [b'"id":""', b'"Ext":1', b'"source":"a b"', b'"time":"now"', b'"n":1.5', b'"ext":{"deep":[1]}', b'"id":"2"']
odd = [
    b'"\\u0022":1',
    b'"x":"\\u0022"',
    b'"x":"\\""',
    b'"i\\u0064":"1"',
    b'"datacontenttype":"text/plain"',
    b'"data_base64":"aGk="',
]
payloads = [
    b'"data":{"a":1,"a":2}',
    b'"data":1e400',
    b'"data": [1.50, "\\u00e9"] ',
    b'"data":"text"',
    b'"data":null',
    b'"data":{}',
]
payloads += [b'"data":%b1%b' % (b"[" * depth, b"]" * depth) for depth in (MAX_DEPTH, MAX_DEPTH + 1)]
members = st.lists(st.sampled_from(plain + bad + odd + payloads), max_size=3)
objects = members.map(lambda extra: an_object()[:-1] + b"".join(b"," + one for one in extra) + b"}")
elements = st.one_of(objects, st.sampled_from([b"7", b"[]", b"null", b"{}", b'"text"']))
usual = st.sampled_from([an_object(), an_object(data={"total": 5}), an_object(data="x" * 400, subject="c-1")])


def alone(text: bytes, index: int) -> Event | list[EventFault]:
    try:
        return structured.read(text, {}, index)
    except InvalidEvent as error:
        return list(error.faults)
    except Malformed as error:
        return [EventFault(index, "", error.code, str(error))]


@settings(max_examples=300)
@given(st.lists(usual, max_size=3), st.lists(elements, max_size=3))
@example([], [an_object(data=1), an_object()[:-1] + b',"data":1,"data":2}'])
def test_a_batch_holds_the_events_that_its_elements_are(first: list[bytes], more: list[bytes]) -> None:
    texts = [*first, *more]
    expected = [alone(text, index) for index, text in enumerate(texts)]
    faults = [fault for one in expected if isinstance(one, list) for fault in one]
    try:
        assert batch(b"[%b]" % b" ,\n".join(texts), LIMITS) == expected
    except InvalidEvent as error:
        assert list(error.faults) == faults
    else:
        assert not faults


def test_of_many_events_only_the_one_that_is_too_large_is_named() -> None:
    fine, large = an_object(data="x" * 1_000), an_object(data="x" * 1_500)
    assert len(batch(b"[%b]" % b",".join([fine] * 5), LIMITS)) == 5
    with pytest.raises(TooLarge, match="event 3"):
        batch(b"[%b]" % b",".join([fine, fine, fine, large]), LIMITS)


def test_many_members_are_read_though_one_by_one() -> None:
    small = Limits(batch_events=2)
    crowded = an_object(data=list(range(200)))
    assert [event.data for event in batch(b"[%b]" % crowded, small)] == [structured.read(crowded, {}).data]
