from __future__ import annotations

import pytest

from tidings.cli.terminal.fitted_table import fitted

COLUMNS = ("state", "event type", "subscriber", "delivery", "subscription", "reason")
ID = "0123456789abcdef0123456789abcdef01234567"
ROWS = [
    ("ACTIVE", "orders.v1", "hub--team--billing", "callback", ID, ""),
    (
        "BLOCKED",
        "de.telekom.eni.quickstart.v1",
        "hub--another-team--a-very-long-name-of-an-application",
        "server_sent_event",
        ID,
        "its zone space is outside of the visibility enterprise of de.telekom.eni.quickstart.v1",
    ),
]


@pytest.mark.parametrize("width", [60, 80, 100, 132])
def test_no_line_is_longer_than_the_terminal_and_nothing_is_lost(width: int) -> None:
    lines = fitted(COLUMNS, ROWS, 2, width)
    assert max(map(len, lines)) <= width
    letters = "".join(sorted("".join(lines).replace(" ", "")))
    beside = COLUMNS[:4]
    assert letters == "".join(sorted("".join(("".join(beside), *("".join(row) for row in ROWS))).replace(" ", "")))


def test_an_id_below_its_row_is_in_one_piece() -> None:
    lines = fitted(COLUMNS, ROWS, 2, 80)
    assert lines.count(f"    {ID}") == 2
    assert lines[1].split() == ["ACTIVE", "orders.v1", "hub--team--billing", "callback"]
    assert any(line.startswith("    its zone space is outside") for line in lines)


def test_where_everything_fits_everything_is_in_one_line() -> None:
    assert len(fitted(COLUMNS, ROWS, 2, 300)) == 3
    assert fitted(("a", "b"), [("1", "2")], 1, 80) == ["a  b", "1  2"]
