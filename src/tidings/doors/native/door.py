"""The native door as a value. It comes last, so that what no other door claims is answered by it."""

from __future__ import annotations

from tidings.doors.door import Door

PREFIX = "/api"


def claimed(path: str) -> str | None:
    """Everything below `/api`; health and metrics come to it since nobody else claims them."""
    return path if path.startswith(f"{PREFIX}/") else None


DOOR = Door(
    name="native",
    title="Tidings",
    prefix=PREFIX,
    application="tidings.doors.native.application",
    claims=claimed,
)
