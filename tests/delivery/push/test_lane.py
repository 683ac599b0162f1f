"""The state of one lane: single rules, and a machine that does everything in any order."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.delivery.push.lanes import a_mark, a_parcel, a_state, taken
from tidings.clock import Instant
from tidings.delivery.push.lane.choice import NOTHING, Allowed, Attempt, Load, Nothing, Refill, Take, Wait, choose
from tidings.delivery.push.lane.entries import DUE, Item, ItemStage
from tidings.delivery.push.lane.saved import decode, encode, encode_item
from tidings.delivery.push.lane.state import LaneState
from tidings.delivery.push.lane.window import Window
from tidings.delivery.push.policy.policy import BatchPolicy
from tidings.errors import DataVersionUnsupported
from tidings.registry.delivery_options import Ordering

NOW = Instant(1_000)


def opened(*numbers: int, limit: int = 100) -> tuple[LaneState, dict[int, Item]]:
    state = a_state(limit=limit)
    return state, {number: taken(state, number) for number in numbers}


def low(state: LaneState) -> int:
    assert state.low_water.number == state.low_water.position.offset
    return state.low_water.number


def test_the_low_water_mark_stays_below_what_is_open() -> None:
    state, items = opened(3, 5, 9)
    assert low(state) == 2
    state.close(items[5])
    assert low(state) == 2
    state.close(items[3])
    assert low(state) == 8
    state.close(items[9])
    assert low(state) == 9


def test_a_retry_keeps_the_item_open_with_its_cause() -> None:
    state, items = opened(3)
    state.begin([items[3]])
    assert state.retry(items[3], Instant(2_000), 2.0, "timeout")
    assert (low(state), state.live.open[3].cause, state.live.open[3].due) == (2, "timeout", 2_000)


def test_a_redelivery_does_not_move_the_low_water_mark() -> None:
    state, items = opened(3, 5)
    state.close(items[3])
    state.close(items[5])
    state.redeliver([a_mark(3)], NOW)
    (item,) = state.items()
    assert (low(state), state.size, item.again) == (5, 1, True)
    assert state.close(item)
    assert state.size == 0


def test_what_is_yet_to_be_taken_needs_no_redelivery() -> None:
    state, _ = opened(3)
    state.redeliver([a_mark(7)], NOW)
    assert state.size == 1


def test_an_open_item_that_is_asked_for_is_due_at_once_and_not_doubled() -> None:
    state, items = opened(3)
    state.begin([items[3]])
    state.retry(items[3], Instant(9_000), 9.0, "timeout")
    state.redeliver([a_mark(3)], NOW)
    assert (items[3].due, items[3].when, state.size) == (DUE, 0.0, 1)


def test_a_rewind_back_opens_what_is_above_once_more_and_keeps_what_is_below() -> None:
    state, items = opened(3, 5, 9)
    state.close(items[5])
    state.begin([items[9]])
    state.rewind(a_mark(4))
    assert (state.live.cursor, list(state.live.open)) == (4, [3])
    assert not state.close(items[9]), "what was on its way before the rewind counts no more"
    taken(state, 5)
    assert low(state) == 2


def test_a_rewind_forward_skips_what_is_open() -> None:
    state, _ = opened(3, 5)
    state.rewind(a_mark(20))
    assert (low(state), state.size, state.live.cursor) == (20, 0, 20)


def test_an_ordered_lane_waits_for_what_was_on_its_way_before_a_rewind() -> None:
    state = a_state()
    state.arrange(Ordering.STRICT, batched=False)
    first = taken(state, 1)
    state.begin([first])
    assert state.rewind(a_mark(5))
    state.saved([None])
    state.live.ready.append(a_parcel(6))
    assert choose(state, Allowed(NOW, 1.0)) == NOTHING
    state.close(first)
    assert choose(state, Allowed(NOW, 1.0)) == NOTHING, "what came of it is not durable"
    state.saved([first])
    assert choose(state, Allowed(NOW, 1.0)) == Take(state.live)


def test_what_waited_and_fails_while_it_is_held_back_is_not_forgotten() -> None:
    state, items = opened(1)
    state.split(a_mark(1))
    second = taken(state, 2)
    state.begin([items[1], second])
    state.retry(second, DUE, 0.0, "status-500")
    state.split(a_mark(2))
    held = Allowed(NOW, 1.0, waited_at=math.inf)
    assert isinstance(choose(state, held), Refill), "only new entries may go"
    assert choose(state, Allowed(NOW, 1.0, waited_at=0.0)) == Load(state.windows[1], [second])


def test_a_lane_that_was_made_anew_keeps_its_items_under_other_numbers() -> None:
    state, _ = opened(7, 8, 9)
    state.renumber(6)
    assert (state.live.cursor, list(state.live.open), [item.position.offset for item in state.items()]) == (
        3,
        [1, 2, 3],
        [7, 8, 9],
    )


def test_a_state_survives_being_saved() -> None:
    state, items = opened(3, 5, 9)
    state.close(items[9])
    state.begin([items[3], items[5]])
    items[5].tries = 2
    state.retry(items[5], Instant(77), 7.0, "status-503")
    state.redeliver([a_mark(9)], NOW)
    state.suspended = True
    changed, _ = state.changes()
    back = decode(encode(state), map(encode_item, changed))
    assert (back.live.cursor, back.suspended, list(back.live.open), list(back.again.open)) == (9, True, [3, 5], [9])
    assert (back.live.open[5].tries, back.live.open[5].due, back.live.open[5].cause) == (2, 77, "status-503")
    assert back.live.open[3].stage is ItemStage.WAITING
    assert back.again.open[9].again


def test_a_state_of_another_form_is_refused() -> None:
    with pytest.raises(DataVersionUnsupported):
        decode(b"\x95\x63\x00\xc2\x90\x90")


# ---- everything in any order


BATCH = BatchPolicy(size=3, time=1.0, bytes=1000)
LIMIT = 8


class Disk:
    """What was saved last: the lane, its rows, and what was owed then."""

    def __init__(self) -> None:
        self.body = b""
        self.rows: dict[int, bytes] = {}
        self.owed: set[int] = set()


class LaneMachine(RuleBasedStateMachine):
    """A lane whose entries are published, sent in any order with any outcome, while everything around it changes.

    The model is plain: which entries are owed (must still be delivered), what is on its way, and what is not durable.
    """

    @initialize()
    def begin(self) -> None:
        self.keys: list[int] = []
        self.owed: set[int] = set()
        self.state = a_state(limit=LIMIT)
        self.disk = Disk()
        self.at = 1.0
        self.ordering, self.batched = Ordering.PARALLEL, False
        self.inflight: list[Sequence[Item]] = []
        self.unsaved: list[Item | None] = []
        self.undurable: list[Item] = []
        self.stopped = False
        self.held = False
        self.open = False
        self.turn = False
        self._save()

    # ---- what the engine does

    def allowed(self) -> Allowed:
        bound = {Ordering.STRICT: 1, Ordering.KEY: 6, Ordering.PARALLEL: LIMIT}[self.ordering]
        most = BATCH.size + 1 if self.batched else bound
        take = self.state.size < LIMIT and len(self.state.live.open) < most
        waited = math.inf if self.held else 0.0
        return Allowed(Instant(round(self.at)), self.at, take, waited, self.turn if len(self.state.windows) > 1 else None)

    def read(self, window: Window) -> None:
        after = window.read_to.number
        found = [n for n in range(after + 1, len(self.keys) + 1) if n <= window.last][:2]
        window.ready.extend(a_parcel(n, key=self.keys[n - 1]) for n in found)
        window.more = window.more and bool(found)
        if not found and window is not self.state.live:
            assert self.state.pass_over(window, window.last) == 0, "nothing is removed in this world"

    def step(self) -> str:
        """One choice, done; what it was."""
        choice = choose(self.state, self.allowed(), BATCH if self.batched else None)
        match choice:
            case Take(window, count):
                self.turn = window is self.state.live
                items = [self.state.take(window, window.ready.popleft(), NOW, self.at) for _ in range(count)]
                item = items[0]
                if not self.batched and self.state.first_of_line(item):
                    self.send([item])
            case Attempt(items):
                self.send(list(items))
            case Refill(window):
                self.read(window)
            case Load(_, items):
                for item in items:
                    item.parcel = a_parcel(item.number, key=item.key)
            case Wait(until):
                assert until > self.at
            case Nothing():
                pass
        return type(choice).__name__

    def send(self, items: list[Item]) -> None:
        self._check_order(items)
        if self.batched:
            held = list(self.state.batch)
            assert not held or held == items, "a batch keeps its members"
            self.state.seal(items)
        self.state.begin(items)
        self.inflight.append(items)

    def _check_order(self, items: list[Item]) -> None:
        assert all(item.stage is ItemStage.WAITING for item in items)
        if not (self.ordering is not Ordering.PARALLEL or self.batched):
            return
        going = [item for attempt in self.inflight for item in attempt]
        for item in items:
            if item.again and not self.batched:
                continue
            assert not [one for one in self.undurable if self._same_line(one, item)], "an outcome is not durable"
            assert not [one for one in going if self._same_line(one, item) and one.number < item.number], "overtaken"
            waiting = [one for one in self.state.items() if not one.again and one not in items]
            assert item.again or not [one for one in waiting if self._same_line(one, item) and one.number < item.number]

    def _same_line(self, one: Item, other: Item) -> bool:
        if self.batched:
            return True
        return not one.again and (self.ordering is Ordering.STRICT or one.key == other.key)

    @property
    def slots(self) -> int:
        return 1 if self.batched or self.ordering is Ordering.STRICT else 4

    def may_send(self) -> bool:
        return not self.stopped and not self.open and len(self.inflight) < self.slots

    # ---- the rules

    @precondition(lambda self: len(self.keys) < 40)
    @rule(keys=st.lists(st.integers(0, 2), min_size=1, max_size=4))
    def publish(self, keys: list[int]) -> None:
        self.owed |= set(range(len(self.keys) + 1, len(self.keys) + len(keys) + 1))
        self.keys += keys
        self.state.live.more = True

    @precondition(lambda self: self.may_send())
    @rule(steps=st.integers(1, 4))
    def choose(self, steps: int) -> None:
        for _ in range(steps):
            if self.may_send():
                self.step()

    @precondition(lambda self: self.inflight)
    @rule(data=st.data(), outcome=st.sampled_from(["delivered", "delivered", "dead", "retry", "park"]))
    def end(self, data: st.DataObject, outcome: str) -> None:
        self.finish(data.draw(st.integers(0, len(self.inflight) - 1)), outcome)

    def finish(self, which: int, outcome: str) -> None:
        items = self.inflight.pop(which)
        for item in items:
            held = self.state.holds(item)
            if outcome in ("delivered", "dead"):
                assert self.state.close(item) is held
                self.owed -= {item.number} if held else set()
            else:
                when = self.at + 5 if outcome == "retry" else 0.0
                assert self.state.retry(item, Instant(round(when)), when, "status-500") is held
            if item.stage is ItemStage.CLOSING:
                self.unsaved.append(item)
            if item.stage in (ItemStage.CLOSING, ItemStage.GONE):
                self.undurable.append(item)
        self.open = self.open or outcome == "park"

    @rule()
    def save(self) -> None:
        self._save()

    def _save(self) -> None:
        changed, removed = self.state.changes()
        for number in removed:
            self.disk.rows.pop(number, None)
        self.disk.rows |= {item.number: encode_item(item) for item in changed}
        self.disk.body, self.disk.owed = encode(self.state), set(self.owed)
        self.undurable = []
        saved, self.unsaved = self.unsaved, []
        self.state.saved(saved)

    @rule(ordering=st.sampled_from(list(Ordering)), batched=st.booleans())
    def change_policy(self, ordering: Ordering, batched: bool) -> None:
        self.ordering, self.batched = ordering, batched
        if self.state.rearrange(ordering, batched=batched):
            self.unsaved.append(None)
        self.state.forget_read()

    @rule(stopped=st.booleans())
    def suspend(self, stopped: bool) -> None:
        self.stopped = stopped
        self.state.restart_lifetimes(NOW)

    @precondition(lambda self: self.open)
    @rule(held=st.booleans())
    def republish(self, held: bool) -> None:
        self.open, self.held = False, held
        if not self.batched and self.ordering is Ordering.PARALLEL:
            self.state.split(a_mark(len(self.keys)))

    @rule()
    def close_breaker(self) -> None:
        self.open = self.held = False

    @precondition(lambda self: self.keys)
    @rule(data=st.data())
    def rewind(self, data: st.DataObject) -> None:
        to = data.draw(st.integers(0, len(self.keys)))
        skipped = to >= self.state.windows[0].cursor
        opened = {number for window in self.state.windows for number in window.open}
        again = set(self.state.again.open)
        if self.state.rewind(a_mark(to)):
            self.unsaved.append(None)
        ahead = set(range(to + 1, len(self.keys) + 1))
        kept = again if skipped else {number for number in opened | again if number <= to}
        self.owed = ahead | kept
        self.state.forget_read()

    @precondition(lambda self: self.keys)
    @rule(data=st.data())
    def redeliver(self, data: st.DataObject) -> None:
        if self.state.room < 1:
            return
        number = data.draw(st.integers(1, len(self.keys)))
        self.state.redeliver([a_mark(number)], NOW)
        self.owed.add(number)

    @rule()
    def restart(self) -> None:
        """Killed: what was not saved happens again."""
        self.state = decode(self.disk.body, self.disk.rows.values(), LIMIT)
        self.state.arm(Instant(round(self.at)), self.at, 10.0)
        self.state.arrange(self.ordering, batched=self.batched)
        self.owed = set(self.disk.owed) | set(range(self.published_then() + 1, len(self.keys) + 1))
        self.inflight, self.unsaved, self.undurable = [], [], []
        self.held = False

    def published_then(self) -> int:
        """What was published since the save is beyond every cursor of then."""
        return max(self.disk.owed | {self.state.live.cursor})

    @rule(seconds=st.integers(1, 6))
    def pass_time(self, seconds: int) -> None:
        self.at += seconds

    @rule()
    def heal(self) -> None:
        """The sweep may come at any time when nobody is on the way and nobody is saving."""
        if not self.inflight and not self.unsaved:
            self.state.heal()
            self.state.forget_read()

    # ---- what always holds

    @invariant()
    def every_entry_is_in_one_place(self) -> None:
        unread = [
            number for window in self.state.windows for number in range(window.cursor + 1, min(window.last, len(self.keys)) + 1)
        ]
        open_items = [item.number for item in self.state.items()]
        assert sorted([*unread, *open_items]) == sorted(self.owed)

    @invariant()
    def stages_say_where_items_are(self) -> None:
        going = {id(item) for attempt in self.inflight for item in attempt}
        for item in self.state.items():
            assert item.stage is (ItemStage.SENDING if id(item) in going else ItemStage.WAITING)
        assert all(item.stage is ItemStage.CLOSING for item in self.state.closing)
        assert self.state.closing <= {item for item in self.unsaved if item is not None}
        if self.state.abandoned:
            assert self.inflight or self.unsaved

    @invariant()
    def the_low_water_mark_is_right(self) -> None:
        again = set(self.state.again.open)
        assert low(self.state) < min(self.owed - again, default=10**9)
        assert all(window.open == dict(sorted(window.open.items())) for window in self.state.windows)

    @invariant()
    def it_is_bounded(self) -> None:
        assert self.state.size <= LIMIT

    @invariant()
    def a_batch_is_open(self) -> None:
        assert all(self.state.holds(item) for item in self.state.batch)
        assert not self.state.batch or self.batched

    def teardown(self) -> None:
        """When everything works again, everything arrives: nothing stays open, and nothing that is due is forgotten."""
        if not hasattr(self, "keys"):
            return
        self.stopped = self.open = self.held = False
        self.state.live.more = True
        for _ in range(2000):
            while self.inflight:
                self.finish(0, "delivered")
            self._save()
            did = self.step()
            if did in ("Wait", "Nothing") and not self.inflight and not self.unsaved:
                if not self.owed:
                    break
                self.at += 1
        assert (self.owed, self.state.size, list(self.state.overdue(self.at))) == (set(), 0, [])
        assert self.state.settled and not self.state.closing and len(self.state.windows) == 1


LaneMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=50, deadline=None)
TestLaneMachine = LaneMachine.TestCase
