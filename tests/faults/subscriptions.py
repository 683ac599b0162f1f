"""The subscriptions of a run: which events each should get, how it is delivered, and how its endpoint behaves.

Topic `orders` has several publishers, `returns` has one, so that its numbers rise and order can be judged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.faults.endpoints import WELL, Mood
from tests.faults.publisher import KEYS
from tests.faults.receipts import LineOf

TOPICS = ("orders", "returns")
BATCH = 20
LONG = {"retryFirst": 6, "retryMax": 6, "retryFactor": 1, "retryJitter": 0, "tries": 10_000}
"""A wait that is longer than a restart of the process that delivers."""

SHORT = {"retryFirst": 0.2, "retryMax": 1, "tries": 10_000}


@dataclass(frozen=True, slots=True)
class Wanted:
    """One subscription. `most`: how many of its events may be on their way at once, where order bounds it.

    `kinds`: how it is delivered, and what that can be changed to. A rewound one gets events again without any fault.
    """

    topic: str
    where: str | None
    takes: Callable[[int], bool]
    policy: Mapping[str, Any] = field(default_factory=lambda: {"tries": 10_000})
    mood: Mood = WELL
    line_of: LineOf | None = None
    most: int | None = None
    kinds: tuple[str, ...] = ("push",)
    rewound: bool = False

    def delivery(self, kind: str, url: str) -> dict[str, Any]:
        """The `delivery` of this subscription, in this kind."""
        return {"kind": "sse"} if kind == "sse" else {"url": url, **self.policy}


def _twentieth(rest: int) -> dict[str, Any]:
    return {"where": f"twentieth = {rest}", "takes": lambda n: n % 20 == rest}


def _one_line(n: int) -> int:
    return 0


def _by_key(n: int) -> int:
    return n % KEYS


SUBSCRIPTIONS: Mapping[str, Wanted] = {
    "everything": Wanted("orders", None, lambda n: True),
    "thirds": Wanted("orders", "third = 0", lambda n: n % 3 == 0),
    "big": Wanted("orders", 'n >= 50 and region = "EU"', lambda n: n >= 50 and n % 2 == 0),
    "flaky": Wanted("orders", **_twentieth(1), policy=SHORT, mood=Mood(fails=0.3, drops=0.1)),
    "slow": Wanted("orders", **_twentieth(2), mood=Mood(slow=2.0)),
    "breaking": Wanted(
        "orders",
        **_twentieth(3),
        policy={"breaker": True, "tries": 1, "probeInterval": 0.5, "inflight": 8},
        mood=Mood(fails=0.2, slow=2.0),
    ),
    "horizon": Wanted(
        "orders",
        **_twentieth(4),
        policy={"preset": "horizon", "tries": 2, "probeInterval": 0.5, "answers": {"500": "wait"}},
        mood=Mood(fails=0.2, status=503, slow=0.5, unwell=0.3),
    ),
    "switching": Wanted(
        "orders",
        **_twentieth(5),
        policy={**SHORT, "attemptTimeout": 5},
        mood=Mood(hangs=0.3, fails=0.1, slow=1.0),
        kinds=("push", "sse"),
    ),
    "returns": Wanted("returns", None, lambda n: True),
    "in-order": Wanted(
        "returns", "third = 0", lambda n: n % 3 == 0, {"ordering": "strict", "tries": 10_000}, line_of=_one_line, most=1
    ),
    "by-key": Wanted(
        "returns", "third = 1", lambda n: n % 3 == 1, {"ordering": "key", "tries": 10_000}, line_of=_by_key, most=KEYS
    ),
    "batched": Wanted(
        "returns",
        "third = 2",
        lambda n: n % 3 == 2,
        {"batchSize": BATCH, "batchTime": 0.1, "ordering": "strict", "tries": 10_000},
        line_of=_one_line,
        most=BATCH,
    ),
    "streamed": Wanted("returns", **_twentieth(0), line_of=_one_line, kinds=("sse",)),
    "strict-failing": Wanted(
        "returns", **_twentieth(1), policy={**LONG, "ordering": "strict"}, mood=Mood(fails=0.1), line_of=_one_line, most=1
    ),
    "key-failing": Wanted(
        "returns", "twentieth < 5", lambda n: n % 20 < 5, {**LONG, "ordering": "key"}, Mood(fails=0.1), _by_key, KEYS
    ),
    "batch-failing": Wanted(
        "returns",
        **_twentieth(7),
        policy={**LONG, "ordering": "strict", "batchSize": 3, "batchTime": 0.3},
        mood=Mood(fails=0.4),
        line_of=_one_line,
        most=5,
    ),
    "hermes-batch": Wanted(
        "returns",
        **_twentieth(8),
        policy={**LONG, "preset": "hermes-batch", "batchForm": "cloudevents", "batchSize": 4, "batchTime": 0.5}
        | {"retryLifetime": 86_400},
        mood=Mood(fails=0.3, drops=0.1),
        line_of=_one_line,
        most=4,
    ),
    "rewound": Wanted(
        "returns",
        **_twentieth(9),
        policy={**SHORT, "ordering": "strict"},
        mood=Mood(fails=0.1, slow=0.2),
        line_of=_one_line,
        rewound=True,
    ),
}
