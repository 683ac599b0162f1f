"""What counts as JSON here (CEJ-07, CE-09, CT-09)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.errors import Malformed
from tidings.events import json_text

REFUSED = {
    b"": "empty",
    b"  ": "empty",
    b"{": "ends too early",
    b"NaN": "JSON",
    b"-Infinity": "JSON",
    b'{"a":NaN}': "JSON",
    b"\xef\xbb\xbf{}": "byte order mark",
    b'"\xff"': "UTF-8",
    b'"\xc0\xa0"': "UTF-8",
    b'"\xed\xa0\x80"': "UTF-8",
    b'{"\xff":1}': "UTF-8",
    b'"\\ud800 and more text"': "surrogate",
    b'"\\udc00"': "surrogate",
    b'{"a":1,"a":2}': "'a' appears twice",
    b'{"x":[{"a":1, "b":{}, "a":2}]}': "'a' appears twice",
    b'{"a":1,"\\u0061":2}': "'a' appears twice",
    b'{"a":"\\u0022","a":"\\""}': "'a' appears twice",
    b'{"a":1,"a":"\\u0022\\u0022"}': "'a' appears twice",
    b'{"a":1,}': "JSON",
    b"01": "JSON",
    b"1 2": "JSON",
    b"'a'": "JSON",
    b'"\t"': "JSON",
    b"[" * 129 + b"]" * 129: "deep",
    b'{"a":' * 200 + b"1" + b"}" * 200: "deep",
    b"[" * 100_000: "deep",
    b'{"a":' * 100_000: "deep",
}


@pytest.mark.parametrize(("text", "word"), REFUSED.items(), ids=lambda value: repr(value)[:30])
def test_bad_json_text_is_refused_with_the_reason(text: bytes, word: str) -> None:
    with pytest.raises(Malformed, match=word):
        json_text.parse(text)
    assert not json_text.is_sound(text)


ACCEPTED = [
    b"1.0",
    b"1e400",
    b"12345678901234567890123",
    b"null",
    b' {"a" : [1 , 2] }\n',
    b'{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]}',
    b'{"a":"\\u0022","b":"\\u0022"}',
    b'{"a\\u0022":1,"a":2}',
    b'"\\ud83d\\ude00"',
    b"[" * 128 + b"]" * 128,
    b"[" + b",".join([b"[]"] * 500) + b"]",
    b'"' + b"[{" * 300 + b'"',
]


@pytest.mark.parametrize("text", ACCEPTED, ids=lambda value: repr(value)[:30])
def test_good_json_text_is_accepted(text: bytes) -> None:
    assert json_text.is_sound(text)


names = st.text(st.sampled_from('ab"\\é'), max_size=2)
objects = st.recursive(
    st.none() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | names,
    lambda child: st.lists(child, max_size=3) | st.lists(st.tuples(names, child), max_size=4).map(tuple),
    max_leaves=12,
)


def written(value: Any, spaces: str) -> tuple[str, bool]:
    """The JSON text of a value whose objects are tuples of pairs, and whether a name is repeated in one of them."""
    if isinstance(value, tuple):
        parts = [(json.dumps(name), *written(child, spaces)) for name, child in value]
        repeated = len({name for name, _ in value}) < len(value) or any(part[2] for part in parts)
        return "{" + f",{spaces}".join(f"{name}:{spaces}{text}" for name, text, _ in parts) + "}", repeated
    if isinstance(value, list):
        items = [written(child, spaces) for child in value]
        return "[" + f",{spaces}".join(text for text, _ in items) + "]", any(repeated for _, repeated in items)
    return json.dumps(value), False


@given(objects, st.sampled_from(["", " ", "\n  "]))
def test_repeated_names_are_found_wherever_they_are(value: Any, spaces: str) -> None:
    text, repeated = written(value, spaces)
    assert json_text.is_sound(text.encode()) is not repeated
