"""The power goes away: what is on the disk at that moment is all that is left, and nothing acknowledged is missing from it.

The hub writes to an ext4 of its own. All its processes stand still, the disk is copied without what only the kernel has, they
are killed, and a hub starts from the copy.
"""

from __future__ import annotations

import random
import time
from pathlib import Path

from tests.faults import images
from tests.faults.ledger import Report
from tests.faults.processes import Family, standing_still
from tests.faults.world import Say, World

MEBIBYTES = 512
SETTINGS = '[log]\ndisk_reserve = "8MiB"\nwal_bytes = "16MiB"\n'


def run(folder: Path, report: Report, times: int, say: Say) -> None:
    """Cut the power so many times; publishers and endpoints live on."""
    report.skipped = images.why_not()
    if report.skipped:
        return
    chance = random.Random(report.seed)
    with images.Image(folder, MEBIBYTES) as image, World(folder, report, data=image.at / "data", settings=SETTINGS) as world:
        world.publish()
        for _ in range(times):
            # Mostly while everything works, sometimes while it still starts.
            if chance.random() < 0.75:
                world.hub.wait_ready(180)
                world.wait_acknowledged(500)
            time.sleep(chance.uniform(0.1, 3.0))
            world.spur()
            _cut(world, image)
            report.done["power cut"] += 1
            say(f"cut the power; {world.acknowledged()} acknowledged so far")
        world.wait_acknowledged(500)
        say("waiting until everything is at rest")
        world.rest()
        world.judge()


def _cut(world: World, image: images.Image) -> None:
    began = time.monotonic()
    processes = Family(world.hub.pid)
    with standing_still(processes.pids()):
        # A process may have been born before its parent stood still.
        processes = Family(world.hub.pid)
        with standing_still(processes.pids()):
            copy = image.copy()
            processes.kill()
    world.hub.ended()
    image.put_in(copy)
    world.disturbed("supervisor", began, time.monotonic())
    world.hub.start().wait_live(60)
