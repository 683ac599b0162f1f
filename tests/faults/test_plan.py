from __future__ import annotations

from tests.faults.plan import LEG, ROUTING, VICTIMS, WORKERS, Act, Step, drawn


def all_steps(seed: int, kills: int) -> list[Step]:
    return [step for leg in drawn(seed, kills) for step in leg]


def test_a_seed_gives_the_same_plan_again_and_another_seed_another_one() -> None:
    assert drawn(7, 12) == drawn(7, 12)
    assert drawn(7, 12) != drawn(8, 12)


def test_a_plan_has_its_kills_among_all_parts_and_every_number_of_workers() -> None:
    for kills, some in ((6, set(VICTIMS)), (50, {*VICTIMS, *ROUTING})):
        plan = all_steps(3, kills)
        victims = [step.target for step in plan if step.act is Act.KILL]
        assert len(victims) == kills
        assert set(victims) == some
        assert 3 * sum(step.at_change for step in plan if step.act is Act.KILL) >= kills
        assert [int(step.target) for step in plan if step.act is Act.WORKERS] == list(WORKERS[1:])


def test_every_leg_ends_with_changes_that_no_kill_follows() -> None:
    for leg in drawn(3, 3 * LEG):
        last = max(n for n, step in enumerate(leg) if step.act is Act.KILL)
        assert {Act.POLICY, Act.KIND, Act.REWIND, Act.CLOSE} <= {step.act for step in leg[last:]}


def test_a_short_plan_changes_policies_and_kinds_and_what_it_suspends_goes_on() -> None:
    plan = all_steps(3, 6)
    acts = {step.act for step in plan}
    assert {Act.POLICY, Act.KIND, Act.REWIND, Act.STOP, Act.CLOSE} <= acts
    for did, undone in ((Act.SUSPEND, Act.ACTIVATE), (Act.FALL, Act.RECOVER)):
        assert [s.target for s in plan if s.act is did] == [s.target for s in plan if s.act is undone]
