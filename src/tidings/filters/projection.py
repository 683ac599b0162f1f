"""Projection: which parts of a JSON payload go on. Done on the text, so that what stays keeps its bytes.

Numbers keep their spelling, members their order, arrays stay arrays (HOR-96 to HOR-101). Nothing here raises for any payload.

| paths are     | written                    | mean                                                                  |
|---------------|----------------------------|-----------------------------------------------------------------------|
| dotted        | `items.0.name`             | names from the root, an index in an array; `$` is a plain name        |
| dotted        | `items.*.name`             | every element of an array; in an object a member called `*`           |
| jsonpath      | `$.items[?(@.v > 1)].name` | what the JSONPath finds                                               |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

import msgspec

from tidings.errors import FilterSyntaxError
from tidings.filters import projection_paths, text_patterns
from tidings.filters.path_tree import Joining, Places, places_of
from tidings.filters.payload import UNREADABLE, exact, is_shallow
from tidings.filters.spans import ChildSpan, Spans

MAX_PATHS = 256
MAX_STEPS = 64
MAX_CHARACTERS = 1024


class ProjectionMode(StrEnum):
    """Whether what the paths find is all that goes on, or all that does not."""

    INCLUDE = "include"
    EXCLUDE = "exclude"


class Syntax(StrEnum):
    """How paths are written."""

    DOTTED = "dotted"
    JSONPATH = "jsonpath"


@dataclass(frozen=True, slots=True)
class Projection:
    """A choice of parts. Build it with `projection`. Without any path it changes nothing (HOR-66)."""

    mode: ProjectionMode
    paths: tuple[str, ...]
    syntax: Syntax = Syntax.DOTTED


def projection(mode: str, paths: Sequence[str], syntax: str = Syntax.DOTTED) -> Projection:
    """The projection that is written so. Raises FilterSyntaxError with the path that is wrong, and what would be right."""
    if mode not in list(ProjectionMode):
        raise FilterSyntaxError("this is no way to project", at="mode", found=mode, expected=" or ".join(ProjectionMode))
    if syntax not in list(Syntax):
        raise FilterSyntaxError("this is no way to write paths", at="syntax", found=syntax, expected=" or ".join(Syntax))
    if len(paths) > MAX_PATHS:
        raise FilterSyntaxError("these are too many paths", found=len(paths), expected=f"at most {MAX_PATHS}")
    for number, path in enumerate(paths):
        _check(path, Syntax(syntax), f"paths[{number}]")
    return Projection(ProjectionMode(mode), tuple(dict.fromkeys(paths)), Syntax(syntax))


def warnings_of(made: Projection) -> Iterator[tuple[str, str]]:
    """What is allowed and hardly meant: each path with a sentence (HOR-97)."""
    for path in made.paths if made.syntax is Syntax.DOTTED else ():
        if path == "$" or path.startswith(("$.", "$[")):
            yield (
                path,
                "dotted paths begin with a member's name: this looks for a member called $; leave it out, or use jsonpath",
            )


def project(made: Projection, data: bytes) -> bytes | None:
    """What is left of the payload; `data` itself when nothing is taken away.

    None: no part of it can be chosen, and the caller decides. It is no JSON, or JSONPaths would have to look at too much of it.
    """
    document = _decoded(data)
    if document is msgspec.UNSET:
        return None
    if not made.paths:
        return data
    spans = Spans(data)
    is_array = spans.is_array(spans.root)
    if not is_array and not spans.is_object(spans.root):
        return b"{}" if made.mode is ProjectionMode.INCLUDE else data
    places = _dotted(made) if made.syntax is Syntax.DOTTED else projection_paths.places(made.paths, document)
    if places is None:
        return None
    left = _Projecting(spans, made.mode).left(spans.root, places)
    if left is None:
        return b"[]" if is_array else b"{}"
    # A root that stays as it is keeps the white space around it too.
    return data if len(left) == spans.end(spans.root) - spans.root else left


class _Projecting:
    """One payload while it is projected. Recursion is no deeper than the paths, nor than the payload."""

    def __init__(self, spans: Spans, mode: ProjectionMode) -> None:
        self._spans = spans
        self._data = spans.data
        self._keep = mode is ProjectionMode.INCLUDE
        self._joining = Joining()

    def left(self, at: int, place: Places) -> bytes | None:
        """What is left of the value that begins here; None: nothing, not even an empty value."""
        spans = self._spans
        end = spans.end(at)
        if place.whole:
            return self._data[at:end] if self._keep else None
        if not (spans.is_object(at) or spans.is_array(at)):
            return None if self._keep else self._data[at:end]
        kept, all_of_it = [], True
        for child, below in self._children(at, place):
            if below is None and not self._keep:
                kept.append(self._data[child.begin : child.end])
                continue
            left = None if below is None else self.left(child.value, below)
            all_of_it &= left is not None and len(left) == child.end - child.value
            if left is not None:
                kept.append(self._data[child.begin : child.value] + left)
        if all_of_it and (kept or not self._keep):
            return self._data[at:end]
        if self._keep and not kept:
            return None
        return b"%c%b%c" % (self._data[at], b",".join(kept), self._data[end - 1])

    def _children(self, at: int, place: Places) -> Iterator[tuple[ChildSpan, Places | None]]:
        if self._spans.is_object(at):
            for child in self._spans.members(at):
                yield child, place.steps.get(child.name)
        else:
            for child in self._spans.elements(at):
                yield child, self._joining.element(place, child.name)


_decode = msgspec.json.Decoder(float_hook=exact).decode


def _decoded(data: bytes) -> object:
    """The document, or UNSET when there is none."""
    try:
        return _decode(data) if is_shallow(data) else msgspec.UNSET
    except UNREADABLE:
        return msgspec.UNSET


@lru_cache(maxsize=4096)
def _dotted(made: Projection) -> Places:
    return places_of((path.split(".") for path in made.paths), stars=True)


def _check(path: object, syntax: Syntax, at: str) -> None:
    if not isinstance(path, str) or not path:
        raise FilterSyntaxError("this is no path", at=at, found=path, expected="a text such as total.amount")
    if len(path) > MAX_CHARACTERS:
        raise FilterSyntaxError("the path is too long", at=at, found=len(path), expected=f"at most {MAX_CHARACTERS} characters")
    text_patterns.check(path)
    if syntax is Syntax.DOTTED and path.count(".") >= MAX_STEPS:
        raise FilterSyntaxError(f"a path has at most {MAX_STEPS} steps", at=at, found=path)
    if syntax is Syntax.JSONPATH:
        _check_jsonpath(path, at)


def _check_jsonpath(path: str, at: str) -> None:
    try:
        projection_paths.check(path)
    except FilterSyntaxError as error:
        place = f"{at}, {error.at}" if error.at else at
        raise FilterSyntaxError(error.what, at=place, found=error.found, expected=error.expected) from error
