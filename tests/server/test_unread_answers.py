"""When a client counts as one that does not read."""

from __future__ import annotations

import pytest

from tidings.server.unread_answers import LEAST, Unread

NEVER, HALF, MUCH = [9 * LEAST] * 5, [9 * LEAST - n * LEAST // 2 for n in range(5)], [(9 - n) * LEAST for n in range(5)]


@pytest.mark.parametrize(
    ("looks", "since"),
    [
        ([0, 0, 0], 3),
        (NEVER, 1),
        (HALF, 5),
        (MUCH, 5),
        ([0, 0, *NEVER], 2),
        ([100, 99, 98, 97], 1),
        ([100, 99, 98, 0], 4),
        ([100, 9 * LEAST, 9 * LEAST - 1], 1),
        ([100, 9 * LEAST, 8 * LEAST], 3),
    ],
)
def test_only_reading_counts_as_reading(looks: list[int], since: float) -> None:
    unread = Unread.at(0)
    for now, waiting in enumerate(looks, 1):
        unread = unread.looked(waiting, now)
    assert unread.since == since


def test_a_client_that_made_room_has_read_though_the_room_is_filled_again() -> None:
    assert Unread.at(7).looked(9 * LEAST, 8).since == 8
