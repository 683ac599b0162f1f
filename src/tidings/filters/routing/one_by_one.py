"""Few filters on one event: every predicate is called, which a generated function would not pay for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tidings.events.avro.payloads import NO_SCHEMAS, SchemaBook
from tidings.filters.algebra import Filter
from tidings.filters.routing.budgets import Watch, unwatched
from tidings.filters.routing.columns import EventRow, Reader
from tidings.filters.routing.index import RoutingProblem, reason_of
from tidings.filters.routing.predicates import Predicate, columns_of, in_row, predicate


class OneByOne:
    """The predicates of some filters."""

    def __init__(self, filters: Mapping[int, Filter], watched: Watch = unwatched, schemas: SchemaBook = NO_SCHEMAS) -> None:
        paths = columns_of(filters.values())
        leaf_test = in_row({path: n for n, path in enumerate(paths)})
        self.reader = Reader(tuple(paths), exact=True, schemas=schemas)
        self._tests = [(route, watched(route, filter, predicate(filter, leaf_test))) for route, filter in filters.items()]

    def match(self, row: EventRow, problems: list[RoutingProblem]) -> list[int]:
        """The routes whose filter holds."""
        found: list[int] = []
        try_each(self._tests, row, found, problems)
        return found


def try_each(tests: Sequence[tuple[int, Predicate]], row: EventRow, found: list[int], problems: list[RoutingProblem]) -> None:
    """The routes whose test holds; a test that fails is a problem of its route alone."""
    for route, test in tests:
        try:
            if test(row, 0):
                found.append(route)
        except Exception as error:  # the last line of defense: one bad filter must not stop the others
            problems.append(RoutingProblem(0, route, reason_of(error)))
