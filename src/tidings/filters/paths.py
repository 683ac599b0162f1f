"""Where a condition looks, and what it makes of what is there: one value, the text of it, or several values.

Dialects that mean different things by the same words use different paths: `DataPath` gives what is at a place as it is,
`OnlyScalarPath` the one text, number or boolean at a place or inside its array, `QueryTextPath` a value as Java writes it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from tidings.errors import FilterSyntaxError
from tidings.filters import backtracking_regex, jsonpath
from tidings.filters.jsonpath import JsonPath

_NAME = re.compile(r"[a-z0-9]{1,128}")
_KEY = re.compile(r"(?!\$)[!#-\[\]-~]+")
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9a-zA-Z]{1,256}")
_MAX_STEPS = 64
_MAX_INDEX = 10**9


@dataclass(frozen=True, slots=True)
class AttributePath:
    """A context attribute with its own type: text, integer or boolean."""

    name: str

    def __post_init__(self) -> None:
        _check_name(self.name)


@dataclass(frozen=True, slots=True)
class AttributeTextPath:
    """A context attribute in its canonical text form: the integer 5 is read as "5", the boolean true as "true".

    `free`: the name is the key of an attribute that CloudEvents would not allow (`events.attribute_names`).
    """

    name: str
    free: bool = False

    def __post_init__(self) -> None:
        if not self.free:
            _check_name(self.name)
        elif not _KEY.fullmatch(self.name) or _NAME.fullmatch(self.name):
            raise FilterSyntaxError("this cannot be the key of an attribute", found=self.name, expected="visible ASCII")


@dataclass(frozen=True, slots=True)
class AttributesPath:
    """Several context attributes at once, with their own types: a tuple of their values, None for one that is missing."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DataPath:
    """A place in the JSON payload: member names (text) and array indexes (numbers from 0), from the outside in."""

    steps: tuple[str | int, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.steps) <= _MAX_STEPS:
            raise FilterSyntaxError("a path has 1 to 64 steps", found=len(self.steps))
        for step in self.steps:
            if isinstance(step, int) and not 0 <= step < _MAX_INDEX:
                raise FilterSyntaxError("an array index counts from 0", found=step, expected="0 to 999999999")


@dataclass(frozen=True, slots=True)
class HeaderPath:
    """A transport header. The letter case of its name does not matter, so it is kept in lower case."""

    name: str

    def __post_init__(self) -> None:
        if not _TOKEN.fullmatch(self.name) or self.name != self.name.lower():
            raise FilterSyntaxError("this cannot be the name of a header", found=self.name, expected="letters, digits and -")


@dataclass(frozen=True, slots=True)
class MemberTextPath:
    """The text of the scalar that names lead to: 12 is "12", 12.0 is "12.0", null is "null" (HOR-92, HOR-93).

    A name of digits is an element where it meets an array. Arrays and objects are there but have no text.
    """

    names: tuple[str, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.names) <= _MAX_STEPS:
            raise FilterSyntaxError("a path has 1 to 64 names", found=len(self.names))


@dataclass(frozen=True, slots=True)
class ScalarsPath:
    """The texts, numbers and booleans that a JSONPath finds, as several values (HOR-76).

    Of an array these are its elements, and an array inside is opened once more; null and objects are no values. A path that
    leads nowhere is missing, while a search that finds nothing gives no values (HOR-77).
    """

    query: str
    limit: float = 0.0

    def __post_init__(self) -> None:
        compiled(self.query, self.limit > 0 or backtracking_regex.is_allowed())


@dataclass(frozen=True, slots=True)
class OnlyScalarPath:
    """The one value of the `ScalarsPath`; missing when there is none or more than one (HOR-78)."""

    query: str
    limit: float = 0.0

    def __post_init__(self) -> None:
        compiled(self.query, self.limit > 0 or backtracking_regex.is_allowed())


@dataclass(frozen=True, slots=True)
class QueryTextPath:
    """The text of the one value at a definite JSONPath, as Java writes it: 1e10 is "1.0E10", an object "{a=1, b=x}" (HER-120)."""

    query: str
    limit: float = 0.0

    def __post_init__(self) -> None:
        if not compiled(self.query, self.limit > 0 or backtracking_regex.is_allowed()).definite:
            raise FilterSyntaxError("this JSONPath may find several values", found=self.query, expected="a definite path")


@dataclass(frozen=True, slots=True)
class QueryTextsPath:
    """The texts of all values that a JSONPath finds, as `QueryTextPath` writes them; null has no text."""

    query: str
    limit: float = 0.0

    def __post_init__(self) -> None:
        compiled(self.query, self.limit > 0 or backtracking_regex.is_allowed())


@dataclass(frozen=True, slots=True)
class AvroTextPath:
    """The text of the value at a place of an Avro payload: names of fields or keys, and indexes.

    A last name that is missing, null and an index out of range give the text "null" (HER-123).
    """

    steps: tuple[str | int, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.steps) <= _MAX_STEPS:
            raise FilterSyntaxError("a path has 1 to 64 steps", found=len(self.steps))


@dataclass(frozen=True, slots=True)
class AvroTextsPath:
    """The texts of all values that a path with `[*]` (None) finds in an Avro payload, as `AvroTextPath` gives each."""

    steps: tuple[str | int | None, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.steps) <= _MAX_STEPS:
            raise FilterSyntaxError("a path has 1 to 64 steps", found=len(self.steps))


@dataclass(frozen=True, slots=True)
class ItemPath:
    """The value that a quantifier is looking at."""


ITEM = ItemPath()

ValuesPath: TypeAlias = ScalarsPath | QueryTextsPath | AvroTextsPath
"""Paths that give several values, as a tuple."""

Path: TypeAlias = (
    AttributePath
    | AttributeTextPath
    | AttributesPath
    | DataPath
    | HeaderPath
    | MemberTextPath
    | OnlyScalarPath
    | QueryTextPath
    | AvroTextPath
    | ValuesPath
    | ItemPath
)


QueryPath: TypeAlias = ScalarsPath | OnlyScalarPath | QueryTextPath | QueryTextsPath
QUERIES = (ScalarsPath, OnlyScalarPath, QueryTextPath, QueryTextsPath)
"""Paths that are JSONPaths. `limit`: the seconds that expressions in them may take which need backtracking; 0: there are none."""


def query_of(path: QueryPath) -> JsonPath:
    """The path's JSONPath, ready to be followed."""
    return compiled(path.query, path.limit > 0)


@lru_cache(maxsize=4096)
def compiled(query: str, slowly: bool = False) -> JsonPath:
    """The JSONPath in json-path's dialect. `slowly`: its expressions may need backtracking. Raises FilterSyntaxError."""
    with backtracking_regex.allowing(slowly):
        return jsonpath.compile(query, "jayway")


def needs_backtracking(query: str) -> bool:
    """Whether a JSONPath that could be compiled holds an expression that RE2 cannot say."""
    try:
        compiled(query)
    except FilterSyntaxError:
        return True
    return False


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name) or name == "data":
        raise FilterSyntaxError(
            "this cannot be the name of an attribute", found=name, expected="1 to 128 lower-case letters and digits"
        )
