"""What a route's texts mean: the passage that its events take. The one place where routing and explaining read them."""

from __future__ import annotations

from tidings import filters
from tidings.config import RegexSettings
from tidings.filters import RE2_ONLY, RegexRules
from tidings.filters.algebra import any_of
from tidings.filters.projection import Projection, projection
from tidings.filters.route_steps import RouteSteps
from tidings.registry.model import FilterText, ProjectionText, Route


def rules_of(settings: RegexSettings) -> RegexRules:
    """Which regular expressions filters may use, as the settings say."""
    return RegexRules(settings.fallback, float(settings.match_timeout), float(settings.budget))


def passage_of(route: Route, regex: RegexRules = RE2_ONLY) -> RouteSteps:
    """What stands between the topics' events and the lane. Raises FilterSyntaxError."""
    return RouteSteps(
        select=any_of(*(_filter(text, regex) for text in route.select)) if route.select else None,
        scope=None if route.scope is None else _projection(route.scope),
        filter=None if route.filter is None else _filter(route.filter, regex),
        projection=None if route.projection is None else _projection(route.projection),
    )


def _filter(text: FilterText, regex: RegexRules) -> filters.Filter:
    return filters.parse(text.dialect, text.text, regex)


def _projection(text: ProjectionText) -> Projection:
    return projection(text.mode, text.paths, text.syntax)
