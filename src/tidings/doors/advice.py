"""What the author of a document should hear about its filters and projections, although nothing is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tidings.registry.model import Exposure, FilterText, ProjectionText, Subscription

if TYPE_CHECKING:
    from tidings.filters import RegexRules
    from tidings.filters.lint import Advice


def advice_on(document: object, regex: RegexRules) -> list[str]:
    """Sentences with their places about a document that was checked."""
    match document:
        case Subscription(filter=filter, projection=projection):
            return [*_told(filter, projection, "", regex)]
        case Exposure(scopes=scopes):
            return [
                sentence
                for name, scope in scopes.items()
                for sentence in _told(scope.filter, scope.projection, f"scopes.{name}.", regex)
            ]
    return []


def _told(filter: FilterText | None, projection: ProjectionText | None, at: str, regex: RegexRules) -> Iterator[str]:
    # Imported late: the router behind it needs numpy, which nobody who only publishes should wait for.
    from tidings import filters
    from tidings.filters.lint import advice, projection_advice
    from tidings.filters.projection import projection as made

    if filter is not None:
        parsed = filters.parse(filter.dialect, filter.text, regex)
        yield from (_placed(at, filter.dialect, one) for one in advice(filter.dialect, filter.text, parsed))
    if projection is not None:
        chosen = made(projection.mode, projection.paths, projection.syntax)
        yield from map(str, projection_advice(chosen, f"{at}project.{projection.mode}"))


def _placed(at: str, dialect: str, one: Advice) -> str:
    place = f"{at}{'where' if dialect == 'where' else 'filter'}"
    return f"{place}.{one}" if one.at else f"{place}: {one}"
