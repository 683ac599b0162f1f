"""The wire shape of an exposure's scopes, and its translation to and from the core model."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from tidings.doors.native.bodies.projection import ProjectBody, projection_from, shown_projection
from tidings.doors.native.bodies.subscription import FilterBody, filter_from, shown_filter
from tidings.doors.native.bodies.wire import Wire
from tidings.registry.model import Scope


class ScopeBody(Wire):
    """A part of the topic's events: which of them (where or filter), and which parts of their payloads (project)."""

    where: str | None = Field(default=None, description='A condition such as `region = "EU"`.')
    filter: FilterBody | None = None
    project: ProjectBody | None = None


def scopes_from(bodies: Mapping[str, ScopeBody]) -> dict[str, Scope]:
    """The scopes that a body describes."""
    return {
        name: Scope(
            filter=filter_from(body.where, body.filter), projection=projection_from(body.project, f"scopes.{name[:50]}.project")
        )
        for name, body in bodies.items()
    }


def shown_scopes(scopes: Mapping[str, Scope]) -> dict[str, ScopeBody]:
    """The scopes as they are shown."""
    return {
        name: ScopeBody(**shown_filter(scope.filter), project=shown_projection(scope.projection))
        for name, scope in scopes.items()
    }
