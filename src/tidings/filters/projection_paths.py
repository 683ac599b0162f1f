"""Where a projection's JSONPaths lead in one document (HOR-97, HOR-99, HOR-101)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from tidings.errors import FilterSyntaxError
from tidings.filters.jsonpath import Flavor, JsonPath, Work, WorkExceeded, compile
from tidings.filters.path_tree import Places, places_of

FLAVOR: Flavor = "jayway"


def check(path: str) -> None:
    """Raise FilterSyntaxError with the place where the path is broken."""
    compile(path, FLAVOR)


def places(paths: tuple[str, ...], document: object) -> Places | None:
    """The places that the paths find; None when finding them would be too much work."""
    try:
        return places_of(_locations(paths, document), stars=False)
    except WorkExceeded:
        return None


def _locations(paths: tuple[str, ...], document: object) -> Iterator[list[str]]:
    work = Work()
    for path in paths:
        compiled = _compiled(path)
        if compiled is None:
            yield path.split(".")
        else:
            yield from ([str(step) for step in location] for location in compiled.find(document, work).locations)


@lru_cache(maxsize=4096)
def _compiled(path: str) -> JsonPath | None:
    """None: the path is broken. It was refused when it was written; one that is met all the same is read as dotted."""
    try:
        return compile(path, FLAVOR)
    except FilterSyntaxError:
        return None
