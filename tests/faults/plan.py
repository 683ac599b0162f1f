"""What is done to a running hub, drawn by a seed. Pure: the same seed and counts give the same plan.

Between two kills there are changes of policies and kinds, suspensions, rewinds, endpoints that fall ill, breakers that are closed
by hand, and processes that stand still. The number of deliver workers goes from 2 to 1 to 3.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from tests.faults.endpoints import FITS
from tests.faults.subscriptions import SUBSCRIPTIONS

WORKERS = (2, 1, 3)
VICTIMS = ("api", "pipeline", "deliver", "supervisor", "java", "deliver")
PUSHED = [name for name, one in SUBSCRIPTIONS.items() if one.kinds == ("push",)]
BREAKERS = [name for name, one in SUBSCRIPTIONS.items() if one.policy.get("breaker") or one.policy.get("preset") == "horizon"]
FAILING = [name for name in PUSHED if SUBSCRIPTIONS[name].mood.fails]


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
    """One step, `after` seconds of quiet. `draw` decides details, such as which worker; `fit` is an endpoint's mood."""

    act: Act
    target: str = ""
    after: float = 0.0
    draw: float = 0.0
    fit: str = ""

    def __str__(self) -> str:
        return " ".join(word for word in (self.act.value, self.target, self.fit) if word)


def drawn(seed: int, kills: int) -> list[Step]:
    """The plan of a run with so many kills."""
    chance = random.Random(seed)
    deck = _deck(chance)
    victims = [VICTIMS[n % len(VICTIMS)] for n in range(kills)]
    chance.shuffle(victims)
    steps: list[Step] = []
    later: list[Step] = []
    for number, victim in enumerate(victims):
        for _ in range(chance.randint(1, 3)):
            step = next(deck)
            steps.append(step)
            later += _undone(step)
        steps.append(Step(Act.KILL, victim, chance.uniform(0.1, 2.0), chance.random()))
        # What was suspended or fell ill stays so over the next kill.
        steps += later
        later = []
        for n, workers in enumerate(WORKERS[1:], start=1):
            if number + 1 == max(1, kills * n // len(WORKERS)):
                steps.append(Step(Act.WORKERS, str(workers), chance.uniform(0.1, 1.0), chance.random()))
    return steps


def _undone(step: Step) -> list[Step]:
    undo = {Act.SUSPEND: Act.ACTIVATE, Act.FALL: Act.RECOVER}
    return [Step(undo[step.act], step.target, 0.5)] if step.act in undo else []


def _deck(chance: random.Random) -> Iterator[Step]:
    """Steps without end. Every kind of step comes before any comes for the second time."""
    while True:
        chosen = [
            *(
                (Act.POLICY, name)
                for name in ("batch-failing", "strict-failing", chance.choice(PUSHED), chance.choice(FAILING))
            ),
            *((Act.KIND, name) for name, one in SUBSCRIPTIONS.items() if len(one.kinds) > 1),
            *((Act.KIND, name) for name, one in SUBSCRIPTIONS.items() if len(one.kinds) > 1),
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
