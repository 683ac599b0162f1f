"""Places in a document as a tree of steps: what a list of paths points at, without saying what is done there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

EVERY = "*"
"""The step that means every element of an array. In an object it is a plain name."""


class Places:
    """A place and those below it. `whole`: a path ends here, so that everything below is meant too.

    Steps are texts: a member's name, or an index as it is written without leading zeros.
    """

    __slots__ = ("every", "steps", "whole")

    def __init__(self) -> None:
        self.steps: dict[str, Places] = {}
        self.every: Places | None = None
        self.whole = False


def places_of(paths: Iterable[Sequence[str]], *, stars: bool) -> Places:
    """The places that these paths lead to. `stars`: a step `*` means every element of an array."""
    root = Places()
    for path in paths:
        place = root
        for step in path:
            place = place.steps.setdefault(step, Places())
        place.whole = True
    if stars:
        _star(root)
    return root


def _star(root: Places) -> None:
    waiting = [root]
    while waiting:
        place = waiting.pop()
        place.every = place.steps.get(EVERY)
        waiting += place.steps.values()


class Joining:
    """Finds the place of an array's element, where an index and `*` may both lead. Made for one document, and remembers it."""

    def __init__(self) -> None:
        self._joined: dict[tuple[int, int], Places] = {}

    def element(self, place: Places, index: str) -> Places | None:
        """The place that the element at this index is."""
        named, every = place.steps.get(index), place.every
        if named is None or every is None:
            return named or every
        key = (id(named), id(every))
        if key not in self._joined:
            self._joined[key] = _union(named, every)
        return self._joined[key]


def _union(one: Places, other: Places) -> Places:
    both = Places()
    both.whole = one.whole or other.whole
    if not both.whole:
        names = one.steps.keys() | other.steps.keys()
        both.steps = {name: _either(one.steps.get(name), other.steps.get(name)) for name in names}
        both.every = both.steps.get(EVERY) if one.every or other.every else None
    return both


def _either(one: Places | None, other: Places | None) -> Places:
    if one is None or other is None:
        found = one or other
        assert found is not None
        return found
    return _union(one, other)
