from __future__ import annotations

from tests.faults.plan import VICTIMS, WORKERS, Act, drawn


def test_a_seed_gives_the_same_plan_again_and_another_seed_another_one() -> None:
    assert drawn(7, 12) == drawn(7, 12)
    assert drawn(7, 12) != drawn(8, 12)


def test_a_plan_has_its_kills_among_all_parts_and_every_number_of_workers() -> None:
    for kills in (6, 50):
        plan = drawn(3, kills)
        victims = [step.target for step in plan if step.act is Act.KILL]
        assert len(victims) == kills
        assert set(victims) == set(VICTIMS)
        assert [int(step.target) for step in plan if step.act is Act.WORKERS] == list(WORKERS[1:])


def test_a_short_plan_changes_policies_and_kinds_and_what_it_suspends_goes_on() -> None:
    plan = drawn(3, 12)
    acts = {step.act for step in plan}
    assert {Act.POLICY, Act.KIND, Act.REWIND, Act.STOP, Act.CLOSE} <= acts
    for did, undone in ((Act.SUSPEND, Act.ACTIVATE), (Act.FALL, Act.RECOVER)):
        assert [s.target for s in plan if s.act is did] == [s.target for s in plan if s.act is undone]
