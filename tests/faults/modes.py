"""Changes between live routing and catching up, as the pipeline's status tells them: brought about, seen at once, timed."""

from __future__ import annotations

import time

from tests.faults.processes import standing_still
from tests.faults.world import World
from tests.hub import Hub
from tidings.observe.part_status import PartState, read_faces

BACKLOG = 700
"""Events that make routing go over to catching up."""

PATIENCE = 60.0
LOOK = 0.002
LATEST = 0.06


def change_of_mode(world: World, draw: float) -> None:
    """Let routing change its mode; returns some hundredths of a second after that, or when it does not come.

    `draw` says which change: into catching up, or out of it again. And how long after it.
    """
    hub = world.hub
    hub.until(lambda: hub.is_ready("pipeline") and is_live(hub), 180, "routing is live")
    pid, enough = hub.child("pipeline"), world.acknowledged() + BACKLOG
    if pid is None:
        return
    world.spur(BACKLOG)
    with standing_still([pid]):
        hub.until(lambda: world.acknowledged() >= enough, 60, "there is a backlog")
    _wait(hub, live=False)
    if draw >= 0.5:
        _wait(hub, live=True)
    time.sleep(draw % 0.5 * 2 * LATEST)


def is_live(hub: Hub) -> bool:
    """Whether one task follows the log."""
    return _figure(_face(hub), "tidings_routing_live") == 1


def changed_at(hub: Hub) -> float:
    """When routing last changed its mode, as Unix time."""
    return _figure(_face(hub), "tidings_routing_changed_seconds")


def _wait(hub: Hub, *, live: bool) -> None:
    give_up = time.monotonic() + PATIENCE
    while is_live(hub) is not live and time.monotonic() < give_up:
        time.sleep(LOOK)


def _face(hub: Hub) -> PartState | None:
    return read_faces(hub.data / "run").get("pipeline")


def _figure(face: PartState | None, name: str) -> float:
    return next((one.value for one in face.series if one.name == name), 0.0) if face else 0.0
