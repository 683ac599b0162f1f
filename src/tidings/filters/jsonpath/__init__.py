"""JSONPath in two dialects, RFC 9535 and Jayway's json-path, each one grammar and one set of steps over a decoded document.

Bounded: a path that exists never raises while it is evaluated but `WorkExceeded`, which whoever evaluates treats as "no match".
Paths of plain names and indexes say so (`singular`), so that others can go there directly. Part of `tidings.filters`; pure.
"""

from __future__ import annotations

from typing import Any, get_args

from tidings.errors import FilterSyntaxError
from tidings.filters.jsonpath.compiled_path import CompiledPath, Flavor, FoundNodes, Hits, Location, Lost, PathRun
from tidings.filters.jsonpath.jayway import grammar
from tidings.filters.jsonpath.standard import grammar as standard_grammar
from tidings.filters.jsonpath.work import Work, WorkExceeded

__all__ = ["Flavor", "FoundNodes", "JsonPath", "Location", "Work", "WorkExceeded", "compile"]


class JsonPath:
    """A compiled path: immutable, safe in threads, and pickled as its text. Build it with `compile`."""

    __slots__ = ("_step", "definite", "flavor", "singular", "text")

    def __init__(self, text: str, flavor: Flavor, compiled: CompiledPath) -> None:
        self.text = text
        self.flavor: Flavor = flavor
        self.definite = compiled.definite
        """It leads to one place at most: names and single indexes only (jayway: also members picked together, functions)."""
        self.singular: Location | None = compiled.singular
        """The names and indexes of a path that has nothing else; None also when an index counts from the end."""
        self._step = compiled.step

    def find(self, document: object, work: Work | None = None) -> FoundNodes:
        """What the path finds in a decoded document. Raises WorkExceeded, nothing else."""
        hits: Hits = []
        try:
            self._step(document, None, PathRun(document, Work() if work is None else work), hits)
        except Lost:
            return FoundNodes(missing=True)
        return FoundNodes(tuple(hits), self.definite and not hits)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JsonPath) and (self.text, self.flavor) == (other.text, other.flavor)

    def __hash__(self) -> int:
        return hash((self.text, self.flavor))

    def __repr__(self) -> str:
        return f"JsonPath({self.text!r}, {self.flavor!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return compile, (self.text, self.flavor)


def compile(text: str, flavor: Flavor) -> JsonPath:
    """The path that the text stands for. Raises FilterSyntaxError with the column, what was found and what would be right."""
    match flavor:
        case "rfc9535":
            return JsonPath(text, flavor, standard_grammar.parse(text))
        case "jayway":
            return JsonPath(text, flavor, grammar.parse(text))
    raise FilterSyntaxError("this JSONPath dialect is not known", found=flavor, expected=" or ".join(get_args(Flavor)))
