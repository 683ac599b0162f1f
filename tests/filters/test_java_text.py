"""Values as Java writes them (HOR-93, HER-120)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from tidings.filters.java_text import scalar_text, whole_text
from tidings.filters.payload import decoded


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (b"12", "12"),
        (b"12.0", "12.0"),
        (b"12.50", "12.5"),
        (b"-0.0", "-0.0"),
        (b"0.55", "0.55"),
        (b"1e10", "1.0E10"),
        (b"1e7", "1.0E7"),
        (b"9999999.5", "9999999.5"),
        (b"0.001", "0.001"),
        (b"0.00012", "1.2E-4"),
        (b"1e400", "Infinity"),
        (b"100.0", "100.0"),
        (b"123456789012345678901234567890", "123456789012345678901234567890"),
        (b"true", "true"),
        (b"null", "null"),
        (b'"x"', "x"),
        (b"[1]", None),
        (b"{}", None),
    ],
)
def test_a_scalar_as_text(written: bytes, text: str | None) -> None:
    assert scalar_text(decoded(written)) == text


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (b"42", "42"),
        (b"0.55", "0.55"),
        (b"1e10", "1.0E10"),
        (b"0.1234567890123456789", "0.1234567890123456789"),
        (b"true", "true"),
        (b"null", None),
        (b'["a", 1.0, null, {"b": ["c"]}]', '["a",1.0,null,{"b":["c"]}]'),
        (b'{"a": 1, "b": "x"}', "{a=1, b=x}"),
        (b'{"a": {"b": [1, "x"], "c": null}}', '{a={b=[1,"x"], c=null}}'),
        (b"{}", "{}"),
        (b"[]", "[]"),
    ],
)
def test_any_value_as_text(written: bytes, text: str | None) -> None:
    assert whole_text(decoded(written)) == text


def test_numbers_of_decoded_avro_are_written_alike() -> None:
    assert (scalar_text(2.0), whole_text(2.0), whole_text(Decimal("2.0"))) == ("2.0", "2.0", "2.0")


def test_what_is_nested_too_deeply_has_no_text() -> None:
    value: Any = []
    for _ in range(100_000):
        value = [value]
    assert whole_text(value) is None
