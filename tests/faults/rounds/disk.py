"""A disk that gets full, again and again: publishing is refused and the reason told, nothing acknowledged is lost, and all
parts go on by themselves when there is room again.
"""

from __future__ import annotations

import random
import time
from pathlib import Path

from tests.faults import images
from tests.faults.ledger import Report
from tests.faults.world import Say, World

MEBIBYTES = 192
SETTINGS = '[log]\ndisk_reserve = "{reserve}"\nwal_bytes = "4MiB"\n'
RESERVES = ("4MiB", "0")
"""With a reserve publishing is refused in time; without one writing itself fails."""

FULL_FOR = 6.0


def run(folder: Path, report: Report, times: int, say: Say) -> None:
    """Half of the times with a reserve, half without."""
    report.skipped = images.why_not()
    if report.skipped:
        return
    chance = random.Random(report.seed)
    for reserve in RESERVES:
        place = folder / f"reserve-{reserve}"
        with images.Image(place, MEBIBYTES) as image:
            settings = SETTINGS.format(reserve=reserve)
            with World(place, report, data=image.at / "data", settings=settings) as world:
                world.publish()
                world.wait_acknowledged(500)
                for _ in range(max(1, times // len(RESERVES))):
                    _fill(world, image, 0 if chance.random() < 0.5 else chance.randrange(256 << 10))
                    report.done[f"full with reserve {reserve}"] += 1
                    say(f"full, and room again; {world.acknowledged()} acknowledged so far")
                say("waiting until everything is at rest")
                world.rest()
                world.judge()


def _fill(world: World, image: images.Image, left: int) -> None:
    """Fill the disk while everybody publishes, look what the hub says, and make room again."""
    began = time.monotonic()
    world.spur()
    filler = image.fill(left)
    refused = world.refused()
    world.hub.until(lambda: world.refused() > refused, 120, "publishing is refused on a full disk")
    if not _said(world):
        world.report.fault("not said", [f"the disk has {left} bytes left, and /health/ready says nothing"])
    filler.unlink()
    world.hub.wait_ready(180)
    world.wait_acknowledged(500)
    # What could not be saved while the disk was full may be delivered once more.
    world.disturbed("deliver", began, time.monotonic())


def _said(world: World) -> bool:
    """Whether the api part says that it takes nothing. What is small may still find room, so it is looked at many times."""
    said, end = False, time.monotonic() + FULL_FOR
    while time.monotonic() < end:
        api = world.hub.call("GET", "/health/ready").json["parts"]["api"]
        said = said or bool(not api["ready"] and api["reason"])
        time.sleep(0.05)
    return said
