"""The plain form of a filter: attributes and places of the payload, without what only one dialect has.

| a dialect's own | plain | differs |
|---|---|---|
| CESQL | the logic of its conditions, errors included (`cesql_logic`) | never |
| Horizon's one value at a place | the value at the place | arrays, null, objects |
| the text of a place (Hermes, Horizon's simple filter) | the value, where it is a text | all that is no text |
| EventBridge's values inside of a place | the value at the place | arrays, objects |
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from tidings.filters.algebra import (
    AllOf,
    Always,
    AnyOf,
    Cesql,
    Compare,
    Each,
    Exists,
    Filter,
    InNetwork,
    Inside,
    Leaf,
    Not,
    OneOf,
    SlowText,
    Text,
    TextOp,
    TextOrder,
    ValueKind,
    all_of,
    any_of,
    literal,
)
from tidings.filters.conversion.cesql_logic import conditions_of
from tidings.filters.conversion.differences import Differences, refuse
from tidings.filters.event_values import place_of
from tidings.filters.paths import (
    AttributePath,
    AttributesPath,
    AttributeTextPath,
    DataPath,
    ItemPath,
    MemberTextPath,
    OnlyScalarPath,
    Path,
    QueryTextPath,
    ScalarsPath,
)

SCALARS_ONLY = "an array counts as its only element in one dialect, and null and objects are no values"
TEXTS_ONLY = "what is no text is compared by its text in one dialect"
ARRAYS_OPENED = "in one dialect some element of an array is enough, and an object is no value"
ORDER_OF_TEXTS = "texts beyond U+FFFF are ordered differently"
_OTHER = "another dialect"


def plain_form(filter: Filter, differences: Differences) -> Filter:
    """The same in the plain form. Raises FilterSyntaxError for what only its own dialect can say."""
    return _Plain(differences).of(filter, ())


class _Plain:
    """Rewrites a filter. `inside` are the steps to the object that an `Inside` is looking at."""

    def __init__(self, differences: Differences) -> None:
        self._differences = differences

    def of(self, filter: Filter, inside: tuple[str | int, ...]) -> Filter:
        match filter:
            case AllOf(parts):
                return all_of(*(self.of(part, inside) for part in parts))
            case AnyOf(parts):
                return any_of(*(self.of(part, inside) for part in parts))
            case Not(Inside(_, ValueKind.OBJECT, Always(True))):
                refuse(filter, _OTHER, "that there is no object somewhere")
            case Not(part):
                return Not(self.of(part, inside))
            case Always():
                return filter
            case Cesql():
                return conditions_of(filter)
            case Inside():
                return self._inside(filter, inside)
        return self._leaf(filter, inside)

    def _inside(self, filter: Inside, inside: tuple[str | int, ...]) -> Filter:
        steps = (*inside, *filter.path.steps)
        self._differences.add(DataPath(steps), ARRAYS_OPENED)
        if filter.kind is ValueKind.VALUE and filter.part == Always(True):
            return Exists(DataPath(steps))
        return self.of(filter.part, steps)

    def _leaf(self, leaf: Leaf, inside: tuple[str | int, ...]) -> Filter:
        match leaf:
            case Each() | InNetwork() | SlowText() | Inside() | Cesql():
                refuse(leaf, _OTHER, "only its own dialect has this")
            case Exists(OnlyScalarPath() | ScalarsPath() as path):
                return Exists(self._place(leaf, path, SCALARS_ONLY))
            case TextOrder(path, op, text):
                place = self._path(leaf, path, inside)
                if isinstance(place, DataPath):
                    self._differences.add(place, ORDER_OF_TEXTS)
                return Compare(place, op, literal(text))
            case Text(path, TextOp.WHOLE, pattern):
                return Text(self._path(leaf, path, inside), TextOp.REGEX, rf"\A(?:{pattern})\z")
            case Compare(path) | OneOf(path) | Text(path) | Exists(path):
                return replace(leaf, path=self._path(leaf, path, inside))
        assert_never(leaf)

    def _path(self, leaf: Leaf, path: Path, inside: tuple[str | int, ...]) -> AttributePath | AttributeTextPath | DataPath:
        match path:
            case AttributePath() | AttributeTextPath():
                return path
            case ItemPath():
                return DataPath(inside)
            case DataPath(steps):
                return DataPath((*inside, *steps))
            case OnlyScalarPath():
                return self._place(leaf, path, SCALARS_ONLY)
            case QueryTextPath() | MemberTextPath():
                return self._place(leaf, path, TEXTS_ONLY)
            case AttributesPath() | ScalarsPath():
                pass
        return refuse(leaf, _OTHER, "only its own dialect looks there")

    def _place(self, leaf: Leaf, path: Path, difference: str) -> DataPath:
        steps = place_of(path)
        if not steps:
            refuse(leaf, _OTHER, "the path may lead to several places, or to the whole payload")
        place = DataPath(steps)
        self._differences.add(place, difference)
        return place
