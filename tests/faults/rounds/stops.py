"""Processes that stand still: nothing is lost, `/health/ready` names who hangs, and the others go on."""

from __future__ import annotations

import time
from pathlib import Path

from tests.faults.ledger import Report
from tests.faults.processes import JAVA, SUPERVISOR, pid_of, standing_still
from tests.faults.world import Say, World

STOPPED = ("api", "pipeline", JAVA, "deliver", SUPERVISOR)
SEEN_WITHIN = 120.0
API_STANDS_STILL = 5.0
LOUD = '[observe]\nlog_level = "debug"\n'
"""Many lines: a part must not wait for somebody to read them."""


def run(folder: Path, report: Report, say: Say) -> None:
    """Let each process stand still in turn, then count."""
    with World(folder, report, settings=LOUD) as world:
        world.publish()
        world.wait_acknowledged(500)
        for part in STOPPED:
            _stand_still(world, part)
            report.done[f"stand still {part}"] += 1
            world.hub.wait_ready(180)
            world.wait_acknowledged(500)
            say(f"{part} stood still; {world.acknowledged()} acknowledged so far")
        say("waiting until everything is at rest")
        world.rest()
        world.judge()


def _stand_still(world: World, part: str) -> None:
    pid, began = pid_of(world.hub, part), time.monotonic()
    assert pid is not None, f"there is no {part}"
    with standing_still([pid]):
        if part == "api":
            time.sleep(API_STANDS_STILL)
        elif part == SUPERVISOR:
            world.wait_acknowledged(3000)
        else:
            _wait_seen(world, part)
            # Nobody who publishes is held up by a stage behind the log.
            world.wait_acknowledged(500)
    world.disturbed(part, began, time.monotonic())


def _wait_seen(world: World, part: str) -> None:
    """Wait until the hub says that the part does not do its work; else that is a fault."""
    name, give_up = "pipeline" if part == JAVA else part, time.monotonic() + SEEN_WITHIN
    while time.monotonic() < give_up:
        answer = world.hub.call("GET", "/health/ready")
        if answer.status != 200 and not answer.json["parts"][name]["ready"]:
            return
        time.sleep(0.5)
    world.report.fault("not said", [f"{part} stood still for {SEEN_WITHIN:.0f} s, and /health/ready did not say so"])
