"""The rules for single fields of published events (HOR-51 to HOR-53), beside the published vectors."""

from __future__ import annotations

import pytest

from tidings.doors.horizon.publish.event_fields import problem_of


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", "b5882acc-e40e-47c4-b767-079d310f1ec0"),
        ("type", "orders.v1"),
        ("source", "anything at all"),
        ("specversion", "0.9"),
        ("datacontenttype", "free"),
        ("time", "2024-02-29T23:59:59.123456789-19:59"),
        ("time", None),
    ],
)
def test_what_is_accepted(field: str, value: object) -> None:
    assert problem_of(field, value) is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", None),
        ("id", 5),
        ("id", "b5882acc-e40e-47c4-b767-079d310f1ec0\n"),
        ("type", "orders/v1"),
        ("source", " "),
        ("specversion", ""),
        ("time", "2024-05-28T11:21:25+20:00"),
        ("time", "2023-02-29T00:00:00Z"),
        ("time", "٢٠٢٤-05-28T11:21:25Z"),
        ("time", "0000-01-01T00:00:00Z"),
    ],
)
def test_what_is_refused_says_what_would_be_right(field: str, value: object) -> None:
    assert str(problem_of(field, value)).startswith("must")
