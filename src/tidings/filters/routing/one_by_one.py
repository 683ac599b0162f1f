"""Every filter on every event: with compiled predicates where there are few of both, plainly where all else failed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import product

import numpy as np

from tidings.errors import Malformed
from tidings.events.stored import event_from
from tidings.filters.algebra import Filter
from tidings.filters.meaning import Read, holds, reading
from tidings.filters.paths import Path
from tidings.filters.routing.columns import Reader, Table
from tidings.filters.routing.index import Pairs, Problem
from tidings.filters.routing.predicates import leaves, predicate


class OneByOne:
    """Predicates over the columns of few events."""

    def __init__(self, filters: Mapping[int, Filter]) -> None:
        paths: dict[Path, int] = {}
        for filter in filters.values():
            for leaf in leaves(filter):
                paths.setdefault(leaf.path, len(paths))
        self.reader = Reader(tuple(paths), exact=True)
        self._predicates = [(route, predicate(filter, paths)) for route, filter in filters.items()]

    def match(self, table: Table, count: int) -> tuple[Pairs, list[Problem]]:
        """The pairs of event and route."""
        pairs = product(range(count), self._predicates)
        return _tried((event, route, partial(test, table.columns, event)) for event, (route, test) in pairs)


def plainly(
    filters: Mapping[int, Filter], heads: Sequence[bytes], datas: Sequence[bytes | None]
) -> tuple[Pairs, list[Problem], list[tuple[int, str]]]:
    """The plain reading of the algebra for every pair; also the events whose head cannot be read, and why."""
    reads: list[tuple[int, Read]] = []
    bad: list[tuple[int, str]] = []
    for event, (head, data) in enumerate(zip(heads, datas, strict=True)):
        try:
            reads.append((event, reading(event_from(head, data))))
        except Malformed as error:
            bad.append((event, str(error)))
    pairs, problems = _tried(
        (event, route, partial(holds, filter, read)) for (event, read), (route, filter) in product(reads, filters.items())
    )
    return pairs, problems, bad


def _tried(tests: Iterable[tuple[int, int, Callable[[], bool]]]) -> tuple[Pairs, list[Problem]]:
    """The pairs whose test holds; a test that fails is a problem of its pair alone."""
    events: list[int] = []
    routes: list[int] = []
    problems: list[Problem] = []
    for event, route, test in tests:
        try:
            if test():
                events.append(event)
                routes.append(route)
        except Exception as error:  # the last line of defense: one bad pair must not stop the batch
            problems.append(Problem(event, route, f"{type(error).__name__}: {error}"))
    return Pairs(np.array(events, np.int32), np.array(routes, np.int32)), problems
