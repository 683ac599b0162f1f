"""What is done to a running hub, drawn by a seed. Pure: the same seed and counts give the same plan.

Between two kills there are changes of policies and kinds, suspensions, rewinds, endpoints that fall ill, breakers that are closed
by hand, and processes that stand still. The number of deliver workers goes from 2 to 1 to 3.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice

from tests.faults.endpoints import FITS
from tests.faults.subscriptions import SUBSCRIPTIONS

WORKERS = (2, 1, 3)
VICTIMS = ("api", "deliver", "supervisor", "pipeline", "deliver", "java")
ROUTING = ("java", "pipeline", "worker")
"""Who is killed just after a change between live routing and catching up; `worker` is the one of Spark that follows the log."""
PUSHED = [name for name, one in SUBSCRIPTIONS.items() if one.kinds == ("push",)]
BREAKERS = [name for name, one in SUBSCRIPTIONS.items() if one.policy.get("breaker") or one.policy.get("preset") == "horizon"]
FAILING = [name for name in PUSHED if SUBSCRIPTIONS[name].mood.fails]


LEG = 10
"""Kills until the hub has to come to rest."""

DECK = 14
"""Steps in which everything comes once that can come."""


class Act(StrEnum):
    """What a step does."""

    KILL = "kill"
    STOP = "stand still"
    POLICY = "change the policy of"
    KIND = "change the kind of"
    SUSPEND = "suspend"
    ACTIVATE = "activate"
    FALL = "let fall ill"
    RECOVER = "let recover"
    REWIND = "rewind"
    CLOSE = "close the breaker of"
    WORKERS = "workers"


@dataclass(frozen=True, slots=True)
class Step:
    """One step, `after` seconds of quiet. `draw` decides details, such as which worker; `fit` is an endpoint's mood.

    `at_change`: a kill that waits for a change of routing's mode and comes within a tenth of a second after it.
    """

    act: Act
    target: str = ""
    after: float = 0.0
    draw: float = 0.0
    fit: str = ""
    at_change: bool = False

    def __str__(self) -> str:
        change = "at a change of mode" if self.at_change else ""
        return " ".join(word for word in (self.act.value, self.target, self.fit, change) if word)


def drawn(seed: int, kills: int) -> list[list[Step]]:
    """The plan of a run with so many kills: legs, after each of which the hub has to come to rest."""
    chance = random.Random(seed)
    deck = _deck(chance)
    victims = _victims(kills)
    chance.shuffle(victims)
    changes = {max(1, kills * n // len(WORKERS)): workers for n, workers in enumerate(WORKERS) if n}
    legs: list[list[Step]] = []
    for first in range(0, kills, LEG):
        leg: list[Step] = []
        for number, victim in enumerate(victims[first : first + LEG], start=first + 1):
            leg += _until_killed(*victim, deck, chance)
            if number in changes:
                leg.append(Step(Act.WORKERS, str(changes[number]), chance.uniform(0.1, 1.0), chance.random()))
        # A restart heals much: at the end there is none, so that what got stuck by a change stays so.
        legs.append([*leg, *_undoing(list(islice(deck, DECK)))])
    return legs


def _victims(kills: int) -> list[tuple[str, bool]]:
    """Who is killed, and whether at a change of mode: a third of them at the least."""
    at_change = -(-kills // 3)
    return [(ROUTING[n % len(ROUTING)], True) for n in range(at_change)] + [
        (VICTIMS[n % len(VICTIMS)], False) for n in range(kills - at_change)
    ]


def _until_killed(victim: str, at_change: bool, deck: Iterator[Step], chance: random.Random) -> list[Step]:
    """A few steps and a kill; what was suspended or fell ill stays so over it."""
    steps = list(islice(deck, chance.randint(1, 3)))
    undoing = _undoing(steps)[len(steps) :]
    return [*steps, Step(Act.KILL, victim, chance.uniform(0.1, 2.0), chance.random(), at_change=at_change), *undoing]


def _undoing(steps: list[Step]) -> list[Step]:
    """The steps, and then those that undo them where they can be undone."""
    undo = {Act.SUSPEND: Act.ACTIVATE, Act.FALL: Act.RECOVER}
    return [*steps, *(Step(undo[step.act], step.target, 0.5) for step in steps if step.act in undo)]


def _deck(chance: random.Random) -> Iterator[Step]:
    """Steps without end. Every kind of step comes before any comes for the second time."""
    switched = [name for name, one in SUBSCRIPTIONS.items() if len(one.kinds) > 1]
    while True:
        chosen = [
            *(
                (Act.POLICY, name)
                for name in ("batch-failing", "strict-failing", chance.choice(PUSHED), chance.choice(FAILING))
            ),
            *((Act.KIND, name) for name in switched * 3),
            *((Act.REWIND, name) for name, one in SUBSCRIPTIONS.items() if one.rewound),
            (Act.SUSPEND, chance.choice(PUSHED)),
            (Act.FALL, chance.choice(PUSHED)),
            (Act.FALL, chance.choice(FAILING)),
            (Act.CLOSE, chance.choice(BREAKERS)),
            (Act.STOP, chance.choice(("api", "pipeline", "deliver", "supervisor", "java"))),
        ]
        chance.shuffle(chosen)
        for act, target in chosen:
            fit = chance.choice([name for name in FITS if name != "well"]) if act is Act.FALL else ""
            yield Step(act, target, chance.uniform(0.1, 1.0), chance.random(), fit)
