"""A logical expression as people write it about events: `where`, in which a bare name is an attribute.

`domain = "nl.vng.zaken" and (type = "a" or type = "b")`. Attributes are compared as text, and their names are read in any letter
case.
"""

from __future__ import annotations

from dataclasses import replace

from tidings.errors import FilterSyntaxError
from tidings.filters.algebra import AllOf, AnyOf, Compare, Exists, Filter, Literal, Not, OneOf, Text, all_of, any_of
from tidings.filters.dialects import where
from tidings.filters.paths import AttributeTextPath, DataPath, Path

LOGICAL = "logical"


def logical(raw: object) -> Filter:
    """The filter that the expression stands for. Raises FilterSyntaxError with the column, or with the name."""
    return _about_attributes(where.parse(raw))


def _about_attributes(filter: Filter) -> Filter:
    match filter:
        case AllOf(parts):
            return all_of(*map(_about_attributes, parts))
        case AnyOf(parts):
            return any_of(*map(_about_attributes, parts))
        case Not(part):
            return Not(_about_attributes(part))
        case Compare(DataPath() as path, _, Literal(value)):
            if not isinstance(value, str):
                raise FilterSyntaxError("an attribute is compared as text", at=_name(path), found=value, expected="a text")
            return replace(filter, path=_attribute(path))
        case OneOf(DataPath() as path, values):
            if not all(isinstance(one.value, str) for one in values):
                raise FilterSyntaxError("an attribute is compared as text", at=_name(path), expected="texts only")
            return replace(filter, path=_attribute(path))
        case Text(DataPath() as path) | Exists(DataPath() as path):
            return replace(filter, path=_attribute(path))
    return filter


def _attribute(path: DataPath) -> Path:
    return AttributeTextPath(_name(path).lower())


def _name(path: DataPath) -> str:
    return ".".join(map(str, path.steps))
