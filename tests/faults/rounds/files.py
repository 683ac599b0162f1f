"""Files of a hub that are moved, removed, replaced or unmounted, while it runs and while it does not.

The hub must refuse and say so. Never may an event be acknowledged that then is in no log, or in a log that nobody routes.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.faults import images
from tests.faults.ledger import Report
from tests.faults.processes import Family
from tests.faults.world import Say, World

REFUSING = 6.0
"""Seconds of publishing while a file is not what it was: the hub looks about once a second by itself."""

MEBIBYTES = 512
SETTINGS = '[log]\ndisk_reserve = "8MiB"\n'


def run(folder: Path, report: Report, say: Say) -> None:
    """One hub after the other; each loses its files in another way."""
    for name, lose in LOSSES.items():
        place = folder / name.replace(" ", "-")
        place.mkdir(parents=True)
        with World(place, report, settings=SETTINGS) as world:
            world.publish()
            world.wait_acknowledged(500)
            if world.rest():
                lose(world)
            report.done[name] += 1
        say(f"{name}: done")
    if reason := images.why_not():
        say(f"unmounted: skipped, {reason}")
    else:
        _unmounted(folder / "unmounted", report)
        report.done["unmounted"] += 1


def _log_files(data: Path) -> list[Path]:
    return sorted(data.glob("log.db*"))


def _refuses(world: World, what: str) -> None:
    """Publish for a while. Whatever is acknowledged now is counted at the end like all else; everything should be refused."""
    refused, acknowledged = world.refused(), world.acknowledged()
    world.spur()
    world.go_on()
    time.sleep(REFUSING)
    world.hold()
    if world.refused() == refused:
        world.report.fault("not refused", [f"{what}: {world.acknowledged() - acknowledged} events were acknowledged meanwhile"])
    ready = world.hub.call("GET", "/health/ready").json
    if "log.db" not in ready["parts"]["api"]["reason"]:
        world.report.fault("not said", [f"{what}: /health/ready says {ready['parts']}"])


def _ends_well(world: World, *, lanes: bool) -> None:
    world.go_on()
    world.wait_acknowledged(500)
    world.rest()
    world.judge(lanes=lanes)


def _moved(world: World) -> None:
    """Moved away under a living hub, and back again: it goes on by itself."""
    away = world.hub.data.parent / "away"
    away.mkdir()
    moved = _log_files(world.hub.data)
    for path in moved:
        path.rename(away / path.name)
    _refuses(world, "log.db was moved away")
    for path in moved:
        (away / path.name).rename(path)
    world.hub.wait_ready(180)
    _ends_well(world, lanes=True)


def _removed(world: World) -> None:
    """Removed under a living hub, after everything was delivered. It refuses to start, and starts when the log was renewed."""
    for path in _log_files(world.hub.data):
        path.unlink()
    _refuses(world, "log.db was removed")
    world.hub.stop()
    _must_not_start(world, "log.db", "log.db was removed")
    _renewed(world)


def _removed_at_night(world: World) -> None:
    """Removed while no hub runs."""
    world.hub.stop()
    for path in _log_files(world.hub.data):
        path.unlink()
    _must_not_start(world, "log.db", "log.db was removed while no hub ran")
    _renewed(world)


def _replaced(world: World) -> None:
    """An older log is put in the place of the one there is, while no hub runs; then the right one again."""
    older, newer = world.hub.data.parent / "older", world.hub.data.parent / "newer"
    world.hub.stop()
    _copy(_log_files(world.hub.data), older)
    world.hub.start().wait_ready(180)
    world.go_on()
    world.wait_acknowledged(500)
    world.rest()
    world.hub.stop()
    _copy(_log_files(world.hub.data), newer)
    _put_back(older, world.hub.data)
    _must_not_start(world, "log.db", "an older log.db was put back")
    _put_back(newer, world.hub.data)
    world.hub.start().wait_ready(180)
    _ends_well(world, lanes=True)


def _without_registry(world: World) -> None:
    """registry.db is lost while no hub runs; then it is put back."""
    kept = world.hub.data.parent / "kept"
    world.hub.stop()
    files = sorted(world.hub.data.glob("registry.db*"))
    _copy(files, kept)
    for path in files:
        path.unlink()
    _must_not_start(world, "registry.db", "registry.db was removed")
    _put_back(kept, world.hub.data)
    world.hub.start().wait_ready(180)
    _ends_well(world, lanes=True)


def _folder(world: World) -> None:
    """The whole folder is removed under a living hub, and made anew, empty. Nothing may be acknowledged into it."""
    shutil.rmtree(world.hub.data, ignore_errors=True)
    world.hub.data.mkdir(exist_ok=True)
    _refuses(world, "the data folder was removed and made anew")
    processes = Family(world.hub.pid)
    world.hub.stop()
    processes.kill()
    world.judge(lanes=False)


def _unmounted(folder: Path, report: Report) -> None:
    """The disk goes away under a living hub, and its path leads to the empty folder below."""
    with images.Image(folder, MEBIBYTES) as image, World(folder, report, data=image.at / "data", settings=SETTINGS) as world:
        world.publish()
        world.wait_acknowledged(500)
        if not world.rest():
            return
        image.unmount(lazily=True)
        _refuses(world, "the disk was unmounted")
        processes = Family(world.hub.pid)
        world.hub.stop()
        processes.kill()
        left = sorted(path.name for path in image.at.rglob("*.db"))
        report.fault("made anew", [f"the disk was unmounted: {name} was made where it had been" for name in left])
        shutil.rmtree(image.at / "data", ignore_errors=True)
        image.mount()
        world.hub.start().wait_ready(180)
        _ends_well(world, lanes=True)


def _must_not_start(world: World, name: str, what: str) -> None:
    """Start it; it has to end with a sentence that names the file."""
    before = world.hub.log.stat().st_size
    world.hub.start()
    try:
        code = world.hub.ended()
    except AssertionError:
        world.report.fault("not refused", [f"{what}, and the hub runs"])
        world.hub.stop()
        return
    told = world.hub.log.read_bytes()[before:].decode(errors="replace")
    if not code or name not in told or "Traceback" in told:
        world.report.fault("not said", [f"{what}: exit code {code}, {told[-500:]!r}"])


def _renewed(world: World) -> None:
    """The way on that the message names: a new log, whose positions go on far beyond the old ones."""
    command = [sys.executable, "-m", "tidings.cli", "renew-log", "--data", str(world.hub.data)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"renew-log: {done.stdout}{done.stderr}"
    # Events that were refused may have come as far as an attempt, out of a file that was there no more.
    for receipts in world.endpoints.receipts.values():
        receipts.forget_waiting()
    world.hub.start().wait_ready(180)
    _ends_well(world, lanes=False)


def _copy(files: list[Path], to: Path) -> None:
    to.mkdir()
    for path in files:
        shutil.copy2(path, to / path.name)


def _put_back(kept: Path, data: Path) -> None:
    """Files with the names of those that were kept are exactly those again."""
    for name in {path.name.partition(".db")[0] for path in kept.iterdir()}:
        for path in data.glob(f"{name}.db*"):
            path.unlink()
    for path in kept.iterdir():
        shutil.copy2(path, data / path.name)


LOSSES: dict[str, Callable[[World], None]] = {
    "log moved": _moved,
    "log removed": _removed,
    "log removed at night": _removed_at_night,
    "log replaced": _replaced,
    "registry removed": _without_registry,
    "folder removed": _folder,
}
