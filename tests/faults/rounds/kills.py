"""Kills, and everything that may happen between them, by a plan that a seed draws."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from tests.faults.ledger import Report
from tests.faults.modes import change_of_mode, changed_at
from tests.faults.plan import WORKERS, Act, Step, drawn
from tests.faults.processes import SUPERVISOR, kill, pid_of, standing_still
from tests.faults.repeats import Disturbance
from tests.faults.subscriptions import SUBSCRIPTIONS
from tests.faults.world import Say, World

LONGEST_STOP = 8.0
SWIFT = 0.1
"""Seconds after a change of mode within which a kill counts as one at the change."""

CHANGES: tuple[dict[str, object], ...] = (
    {"attemptTimeout": 25},
    {"attemptTimeout": 30, "connectTimeout": 4},
    {"rate": 200},
    {"retryAfterMax": 60},
    {"tracking": "off"},
    {},
)
"""What a policy change adds to a subscription's own policy; order and batches stay."""

SIZES = (3, 5)
"""Batch sizes that a change may set where batches are small; a batch on its way keeps its members."""


def run(folder: Path, report: Report, *, kills: int, events: int, say: Say) -> None:
    """Start, publish, follow the plan, wait until the hub is at rest, count."""
    with World(folder, report, workers=WORKERS[0]) as world:
        world.publish()
        steps = _Steps(world)
        legs = drawn(report.seed, kills)
        for number, leg in enumerate(legs, start=1):
            for step in leg:
                time.sleep(step.after)
                if steps.take(step):
                    report.done[_counted(step)] += 1
                    say(f"{step}; {world.acknowledged()} acknowledged so far")
                world.spur()
            # What came back must work, not only have lost nothing.
            world.wait_acknowledged(max(500, events * number // len(legs) - world.acknowledged()), 1800)
            say("waiting until everything is at rest")
            if not world.rest():
                break
            world.go_on()
        world.judge()


def _counted(step: Step) -> str:
    return f"{step.act} {step.target}" if step.act in (Act.KILL, Act.STOP) else step.act.value


class _Steps:
    """Does one step after the other. A call to the hub is made until somebody answers."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._does: dict[Act, Callable[[Step], bool]] = {
            Act.KILL: self._kill,
            Act.STOP: self._stop,
            Act.POLICY: self._policy,
            Act.KIND: self._kind,
            Act.SUSPEND: lambda step: self._state(step, "suspended"),
            Act.ACTIVATE: lambda step: self._state(step, "active"),
            Act.FALL: self._fall,
            Act.RECOVER: self._recover,
            Act.REWIND: lambda step: self._world.rewind(step.target),
            Act.CLOSE: self._close,
            Act.WORKERS: self._workers,
        }

    def take(self, step: Step) -> bool:
        """Whether there was anything to do."""
        return self._does[step.act](step)

    def _kill(self, step: Step) -> bool:
        """Kill it, as soon as it is there: one that was killed a moment ago comes back first."""
        hub, part = self._world.hub, self._part(step)
        if step.at_change:
            change_of_mode(self._world, step.draw)
        if not step.at_change and part in ("pipeline", "java") and step.draw < 0.75:
            # Spark takes seconds to start: without waiting, routing would hardly ever be killed in mid-batch.
            hub.until(lambda: hub.is_ready("pipeline"), 180, "the pipeline routes")
        changed = changed_at(hub)
        hub.until(lambda: kill(hub, part), 120, f"there is a {part} to kill")
        if step.at_change and time.time() - changed <= SWIFT:
            self._world.report.swift += 1
        self._world.disturbed(part, time.monotonic())
        if part == SUPERVISOR:
            hub.start()
        return True

    def _stop(self, step: Step) -> bool:
        pid, began = pid_of(self._world.hub, self._part(step)), time.monotonic()
        if pid is None:
            return False
        with standing_still([pid]):
            time.sleep(1.0 + step.draw * (LONGEST_STOP - 1.0))
        self._world.disturbed(step.target, began, time.monotonic())
        return True

    def _part(self, step: Step) -> str:
        worker = int(step.draw * 1000) % self._world.workers
        return f"deliver-{worker}" if step.target == "deliver" and worker else step.target

    def _policy(self, step: Step) -> bool:
        own = SUBSCRIPTIONS[step.target].policy
        change = dict(CHANGES[int(step.draw * len(CHANGES))])
        if own.get("batchSize") in SIZES:
            change["batchSize"] = SIZES[int(step.draw * 1000) % len(SIZES)]
        self._world.ask("PUT", f"/api/subscriptions/{step.target}/policy", {**own, **change})
        return True

    def _kind(self, step: Step) -> bool:
        kinds = SUBSCRIPTIONS[step.target].kinds
        began = time.monotonic()
        self._world.declare(step.target, kinds[(kinds.index(self._world.kinds[step.target]) + 1) % len(kinds)])
        self._world.report.disturbances.append(Disturbance(began, time.monotonic(), step.target))
        return True

    def _state(self, step: Step, state: str) -> bool:
        self._world.ask("PUT", f"/api/subscriptions/{step.target}/state", {"state": state})
        return True

    def _fall(self, step: Step) -> bool:
        self._world.endpoints.fall(step.target, step.fit)
        return True

    def _recover(self, step: Step) -> bool:
        self._world.endpoints.recover(step.target)
        return True

    def _close(self, step: Step) -> bool:
        self._world.ask("POST", f"/api/subscriptions/{step.target}/breaker/close")
        return True

    def _workers(self, step: Step) -> bool:
        self._world.restart(int(step.target))
        return True
