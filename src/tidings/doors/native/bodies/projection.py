"""The wire shape of a projection, and its translation to and from the core model."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tidings.doors.native.bodies.wire import Wire
from tidings.errors import Malformed
from tidings.registry.model import ProjectionText


class ProjectBody(Wire):
    """Which parts of a JSON payload go on: only those included, or all but those excluded. Arrays stay arrays."""

    include: list[str] | None = Field(default=None, description="Paths such as `total.amount`, `items.0`, `items.*.name`.")
    exclude: list[str] | None = None
    syntax: Literal["dotted", "jsonpath"] = "dotted"


def projection_from(body: ProjectBody | None, at: str = "project") -> ProjectionText | None:
    """The projection that a body describes."""
    if body is None:
        return None
    if (body.include is None) == (body.exclude is None):
        raise Malformed("a projection includes or excludes", at=at, expected="include or exclude")
    if body.include is not None:
        return ProjectionText(mode="include", paths=tuple(body.include), syntax=body.syntax)
    return ProjectionText(mode="exclude", paths=tuple(body.exclude or ()), syntax=body.syntax)


def shown_projection(projection: ProjectionText | None) -> ProjectBody | None:
    """The projection as it is shown."""
    if projection is None:
        return None
    return ProjectBody.model_validate({projection.mode: list(projection.paths), "syntax": projection.syntax})
