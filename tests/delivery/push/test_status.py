"""The word for what became of an event, from a lane's state and the newest fact."""

from __future__ import annotations

import msgspec
import pytest

from tests.builders import a_position
from tests.delivery.push.lanes import a_mark, a_state, an_item
from tidings.clock import Instant
from tidings.delivery.push.lane.breaker import Breaker, Status
from tidings.delivery.push.lane.state import LaneState
from tidings.delivery.push.lane.window import Window
from tidings.delivery.push.reader import DeliveryRecord
from tidings.delivery.push.records.causes import sentence, target_of
from tidings.delivery.push.records.port import LaneStanding, Last
from tidings.delivery.push.records.status import status_of
from tidings.log.position import LaneNumber


def a_fact(state: str, at: int = 100, upto: int | None = None, offset: int = 5) -> DeliveryRecord:
    return DeliveryRecord(
        number=at,
        position=a_position(offset),
        state=state,
        tries=1,
        at=Instant(at),
        cause="timeout",
        upto=None if upto is None else a_position(upto),
    )


def a_lane(cursor: int, **tries: int) -> LaneState:
    """A lane up to a cursor with open items such as o5=2: offset 5 after two tries."""
    items = [
        an_item(int(name[1:]), tries=count, due=Instant(900), since=Instant(50), cause="timeout", again=name[0] == "a")
        for name, count in tries.items()
    ]
    return a_state(cursor, items)


def behind_a_breaker(*taken: int) -> LaneState:
    """Offsets 4 to 10 waited; these of them were taken, and 5 is open if it was."""
    state = a_state(20)
    reached = max(taken, default=3)
    state.windows.insert(0, Window(a_mark(reached), a_mark(10)))
    state.restore([an_item(5)] if 5 in taken else [])
    return state


def in_order(cursor: int, **tries: int) -> LaneState:
    """A lane with an order, whose breaker was open until 7."""
    state = a_lane(cursor, **tries)
    state.breaker = Breaker(status=Status.REPUBLISHING, until=7)
    return state


@pytest.mark.parametrize(
    ("word", "state", "fact", "expected"),
    [
        ("active", a_lane(4), None, "processed"),
        ("suspended", a_lane(4), None, "waiting"),
        ("open", a_lane(4), None, "waiting"),
        ("disabled", a_lane(9, o5=1), "retrying", "waiting"),
        ("active", a_lane(9, o5=0), None, "sending"),
        ("active", a_lane(9, o5=1), "retrying", "retrying"),
        ("active", a_lane(9), "delivered", "delivered"),
        ("active", a_lane(9), "dead", "dead"),
        ("active", a_lane(9), "expired", "expired"),
        ("active", a_lane(9), None, "unrecorded"),
        ("active", a_lane(9), "retrying", "unrecorded"),
        ("active", a_lane(9, a5=0), "dead", "redelivering"),
        ("open", a_lane(9, a5=0), "dead", "waiting"),
        ("active", a_lane(4), "delivered", "redelivering"),
        ("open", behind_a_breaker(), None, "waiting"),
        ("republishing", behind_a_breaker(), None, "redelivering"),
        ("republishing", in_order(4), None, "redelivering"),
        ("republishing", in_order(9, o5=0), None, "redelivering"),
        ("republishing", in_order(9, o5=1), "retrying", "retrying"),
        ("republishing", in_order(9), "delivered", "delivered"),
        ("republishing", behind_a_breaker(4, 5), None, "redelivering"),
        ("republishing", behind_a_breaker(4, 5, 6), "delivered", "redelivering"),
        ("republishing", behind_a_breaker(6), "delivered", "delivered"),
        ("deleted", a_lane(4), None, "deleted"),
        ("deleted", a_lane(9, o5=2), "retrying", "deleted"),
        ("deleted", a_lane(9), "delivered", "delivered"),
    ],
)
def test_the_state_of_an_event(word: str, state: LaneState, fact: str | None, expected: str) -> None:
    last = None if fact is None else Last(a_fact(fact), 3, Instant(50))
    found = status_of(LaneNumber(1), a_mark(5), LaneStanding(word, state), last)
    assert found.state == expected
    if expected == "deleted":
        assert (found.cause, found.message) == (
            "subscription-deleted",
            "the subscription was deleted before it was delivered",
        )
    if expected == "retrying":
        assert (found.next_due, found.attempts, found.cause, found.first_at) == (900, 4, "timeout", 50)


def test_what_expired_before_it_was_sent_has_no_attempts() -> None:
    never_sent = Last(msgspec.structs.replace(a_fact("expired"), tries=0), 0, Instant(50))
    found = status_of(LaneNumber(1), a_mark(5), LaneStanding("active", a_lane(9)), never_sent)
    assert (found.state, found.attempts) == ("expired", 0)


def test_an_event_that_was_skipped_says_so_unless_something_newer_is_known() -> None:
    skipped = [a_fact("skipped", at=200, upto=8, offset=2)]
    here = a_mark(5)
    standing = LaneStanding("active", a_lane(9))

    def state(last: Last | None) -> str:
        return status_of(LaneNumber(1), here, standing, last, skipped).state

    assert state(None) == "skipped"
    assert state(Last(a_fact("retrying", at=100), 1, Instant(100))) == "skipped"
    assert state(Last(a_fact("delivered", at=300), 1, Instant(300))) == "delivered"


@pytest.mark.parametrize(
    ("cause", "says"),
    [
        ("", ""),
        ("status-503", "the endpoint answered 503"),
        ("timeout", "no answer came in time"),
        ("expired unread: 3 after 5", "its retention ended before it was delivered"),
        ("a batch is too large", "a batch is too large"),
    ],
)
def test_a_cause_is_told_in_words(cause: str, says: str) -> None:
    assert sentence(cause) == says


def test_a_target_is_kept_without_what_may_be_secret() -> None:
    assert target_of("https://user:secret@hooks.example:8443/in/box?token=abc") == "https://hooks.example:8443/in/box"
