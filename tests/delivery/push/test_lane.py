"""The state of one lane: single rules, and a machine that does everything in any order."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tidings.clock import Instant
from tidings.delivery.push.lane import DUE, UNKNOWN, Item, LaneState, decode, encode
from tidings.errors import DataVersionUnsupported
from tidings.log.position import Offset

NOW = Instant(1_000)


def taken(*offsets: int, limit: int = 100) -> tuple[LaneState, dict[int, Item]]:
    state = LaneState(limit=limit)
    return state, {offset: state.take(Offset(offset), NOW) for offset in offsets}


def test_the_low_water_mark_stays_below_what_is_open() -> None:
    state, items = taken(3, 5, 9)
    assert state.low_water == 2
    state.close(items[5])
    assert (state.low_water, state.done_ranges()) == (2, [(4, 8)])
    state.close(items[3])
    assert state.low_water == 8
    state.close(items[9])
    assert (state.low_water, state.done_ranges()) == (9, [])


def test_a_retry_keeps_the_item_open_with_its_cause() -> None:
    state, items = taken(3)
    assert state.retry(items[3], Instant(2_000), "timeout")
    assert (state.low_water, state.open[Offset(3)].cause, state.open[Offset(3)].due) == (2, "timeout", 2_000)


def test_a_redelivery_does_not_move_the_low_water_mark() -> None:
    state, items = taken(3, 5)
    state.close(items[3])
    state.close(items[5])
    (item,) = state.redeliver([Offset(3)], NOW)
    assert (state.low_water, state.size, item.again) == (5, 1, True)
    assert state.close(item)
    assert state.size == 0


def test_what_is_yet_to_be_taken_needs_no_redelivery() -> None:
    state, _ = taken(3)
    assert state.redeliver([Offset(7)], NOW) == []


def test_an_open_item_that_is_asked_for_is_due_at_once_and_not_doubled() -> None:
    state, items = taken(3)
    state.retry(items[3], Instant(9_000), "timeout")
    assert state.redeliver([Offset(3)], NOW) == [items[3]]
    assert (items[3].due, state.size) == (DUE, 1)


def test_what_is_being_sent_is_not_made_due_a_second_time() -> None:
    state, items = taken(3)
    items[3].sending = True
    assert state.redeliver([Offset(3)], NOW) == []


def test_a_rewind_back_opens_what_is_above_once_more_and_keeps_what_is_below() -> None:
    state, items = taken(3, 5, 9)
    state.close(items[5])
    state.rewind(Offset(4))
    assert (state.cursor, list(state.open)) == (4, [3])
    assert not state.close(items[9]), "what was on its way before the rewind counts no more"
    state.take(Offset(5), NOW)
    assert state.low_water == 2


def test_a_rewind_forward_skips_what_is_open() -> None:
    state, _ = taken(3, 5)
    state.rewind(Offset(20))
    assert (state.low_water, state.size, state.cursor) == (20, 0, 20)


def test_what_is_gone_before_the_next_entry_is_told_once() -> None:
    state, _ = taken(3, 5)
    assert state.reach(2) == 0
    assert state.reach(6) == 4
    assert state.reach(6) == 0
    assert decode(encode(state)).reach(6) == 0
    state.take(Offset(20), NOW)
    assert state.reach(8) == 1


def test_a_lane_that_was_made_anew_and_has_had_fewer_entries_has_lost_none() -> None:
    state, _ = taken(3, 5, 9)
    assert (state.reach(1), state.taken) == (0, 1)


def test_after_a_rewind_nothing_is_missed_until_the_next_entry_says_where_it_is() -> None:
    state, _ = taken(3, 5, 9)
    state.rewind(Offset(3))
    assert state.taken == UNKNOWN
    assert decode(encode(state)).taken == UNKNOWN
    assert (state.reach(2), state.taken) == (0, 2)
    assert state.reach(3) == 1


def test_a_state_saved_before_entries_were_counted_does_not_know_its_count() -> None:
    old = decode(bytes.fromhex("95 01 07 c3 90 90"))
    assert (old.cursor, old.suspended, old.taken) == (7, True, UNKNOWN)
    assert old.reach(40) == 0


def test_a_state_survives_being_saved() -> None:
    state, items = taken(3, 5, 9)
    state.close(items[9])
    items[3].sending = True
    items[5].tries = 2
    state.retry(items[5], Instant(77), "status-503")
    state.redeliver([Offset(9)], NOW)
    state.suspended = True
    back = decode(encode(state))
    assert (back.cursor, back.suspended, list(back.open), list(back.again)) == (9, True, [3, 5], [9])
    assert back.open[Offset(5)] == items[5]
    assert not back.open[Offset(3)].sending
    assert back.again[Offset(9)].again


def test_a_state_of_another_form_is_refused() -> None:
    with pytest.raises(DataVersionUnsupported):
        decode(b"\x95\x63\x00\xc2\x90\x90")


class LaneMachine(RuleBasedStateMachine):
    """A lane with some entries, sent in any order with any outcome, rewound, redelivered, saved and loaded.

    The model is plain: which entries are owed (must still be delivered), and which were given up or done.
    """

    LIMIT = 5

    @initialize(gaps=st.lists(st.integers(1, 3), min_size=1, max_size=20))
    def fill(self, gaps: list[int]) -> None:
        self.entries = [sum(gaps[: n + 1]) for n in range(len(gaps))]
        self.state = LaneState(limit=self.LIMIT)
        self.owed = set(self.entries)
        self.sending: list[Item] = []

    def next_entry(self) -> int | None:
        return next((entry for entry in self.entries if entry > self.state.cursor), None)

    @precondition(lambda self: self.state.room > 0 and self.next_entry() is not None and not self.state.suspended)
    @rule()
    def begin_live(self) -> None:
        entry = self.next_entry()
        assert entry in self.owed, "an entry that is final is not sent unless asked"
        assert self.state.reach(self.entries.index(entry)) == 0, "nothing is gone"
        item = self.state.take(Offset(entry), NOW)
        item.sending = True
        self.sending.append(item)

    @rule(ahead=st.integers(0, 30))
    def split(self, ahead: int) -> None:
        """The breaker opened and a probe succeeded: for the first time, or while what waited is being sent."""
        parts = self.state.split if self.state.back is None else self.state.extend
        parts(Offset(self.state.cursor + ahead))
        assert self.state.reach(sum(entry <= self.state.cursor for entry in self.entries)) == 0
        self.state.back_left()

    @precondition(lambda self: self.state.back is not None and self.state.room > 0 and not self.state.suspended)
    @rule()
    def begin_back(self) -> None:
        waited = self.waited()
        if not waited:
            assert self.state.back_read() == 0, "nothing is gone"
            return
        item = self.state.take_back(Offset(waited[0]), NOW)
        item.sending = True
        self.sending.append(item)

    def waited(self) -> list[int]:
        """What is in the back window and was not taken."""
        back = self.state.back
        return [entry for entry in self.entries if back.waits(Offset(entry))] if back is not None else []

    def opened(self) -> set[int]:
        return {*self.state.open, *(self.state.back.open if self.state.back is not None else ())}

    @precondition(lambda self: any(not item.sending for item in self.state.items()) and not self.state.suspended)
    @rule(data=st.data())
    def begin_retry(self, data: st.DataObject) -> None:
        item = data.draw(st.sampled_from([item for item in self.state.items() if not item.sending]))
        assert item.offset in self.owed
        item.sending = True
        self.sending.append(item)

    @precondition(lambda self: self.sending)
    @rule(data=st.data(), final=st.booleans())
    def end(self, data: st.DataObject, final: bool) -> None:
        item = self.sending.pop(data.draw(st.integers(0, len(self.sending) - 1)))
        if not final:
            item.sending = False
            item.tries += 1
            self.state.retry(item, Instant(NOW + 10), "status-500")
        elif self.state.close(item):
            self.owed.discard(item.offset)

    @rule(to=st.integers(0, 60))
    def rewind(self, to: int) -> None:
        forward = to >= (self.state.cursor if self.state.back is None else self.state.back.cursor)
        self.state.rewind(Offset(to))
        if forward:
            self.owed = {entry for entry in self.entries if entry > to} | (self.owed & set(self.state.again))
        else:
            self.owed = {entry for entry in self.entries if entry > to} | {entry for entry in self.owed if entry <= to}

    @rule(data=st.data())
    def redeliver(self, data: st.DataObject) -> None:
        known = [entry for entry in self.entries if entry <= self.state.cursor]
        chosen = data.draw(st.lists(st.sampled_from(known), max_size=max(0, self.state.room))) if known else []
        for item in self.state.redeliver(map(Offset, chosen), NOW):
            assert item.due <= NOW
        self.owed |= set(chosen)

    @rule(suspended=st.booleans())
    def suspend_or_activate(self, suspended: bool) -> None:
        self.state.suspended = suspended

    @rule()
    def crash_and_load(self) -> None:
        self.state = decode(encode(self.state), self.LIMIT)
        self.sending = []

    @invariant()
    def nothing_is_lost(self) -> None:
        waiting = {entry for entry in self.entries if entry > self.state.cursor}
        assert waiting | set(self.waited()) | self.opened() | set(self.state.again) == self.owed

    @invariant()
    def the_low_water_mark_is_right(self) -> None:
        undone = [*self.opened(), *self.waited(), *(entry for entry in self.entries if entry > self.state.cursor)]
        assert self.state.low_water < min(undone, default=10**9)
        assert self.state.low_water <= self.state.cursor
        if self.state.open and self.state.back is None:
            assert self.state.low_water == min(self.state.open) - 1
        done = {entry for first, last in self.state.done_ranges() for entry in range(first, last + 1)}
        assert not done & {*self.opened(), *self.waited()}

    @invariant()
    def what_was_taken_is_counted(self) -> None:
        passed = sum(entry <= self.state.cursor for entry in self.entries)
        assert self.state.taken in (passed, UNKNOWN)

    @invariant()
    def it_is_bounded(self) -> None:
        assert self.state.size <= self.LIMIT


LaneMachine.TestCase.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
TestLaneMachine = LaneMachine.TestCase
