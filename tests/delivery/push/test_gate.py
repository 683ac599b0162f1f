"""Who may go, by order: a machine that lets items enter, go and leave in any order."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tidings.delivery.push.gate import Gate
from tidings.delivery.push.lane import Item
from tidings.log.position import Offset
from tidings.registry.wishes import Ordering


class Gates(RuleBasedStateMachine):
    """Lines as lists beside the gate: the first of a line may go, nobody else, and all go in the end."""

    @initialize(ordering=st.sampled_from(list(Ordering)))
    def begin(self, ordering: Ordering) -> None:
        self.gate = Gate(ordering)
        self.ordering = ordering
        self.lines: dict[int, list[Item]] = {}
        self.offset = 0

    def line(self, item: Item) -> int:
        return {Ordering.STRICT: 0, Ordering.KEY: item.key, Ordering.PARALLEL: item.offset}[self.ordering]

    @rule(key=st.integers(0, 3))
    def enter(self, key: int) -> None:
        self.offset += 1
        item = Item(Offset(self.offset), key=key)
        line = self.lines.setdefault(self.line(item), [])
        line.append(item)
        assert self.gate.enter(item) == (len(line) == 1)

    @precondition(lambda self: any(self.lines.values()))
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        item = data.draw(st.sampled_from([item for line in self.lines.values() for item in line]))
        line = self.lines[self.line(item)]
        first = line[0] is item
        line.remove(item)
        assert self.gate.leave(item) is (line[0] if first and line else None)
        for one in self.lines.values():
            assert [self.gate.may_go(other) for other in one] == [n == 0 for n in range(len(one))]


TestGates = Gates.TestCase
TestGates.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def test_a_redelivery_is_held_up_by_nobody() -> None:
    gate = Gate(Ordering.STRICT, [Item(Offset(1)), Item(Offset(2))])
    assert gate.may_go(Item(Offset(1), again=True))
