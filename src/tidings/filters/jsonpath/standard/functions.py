"""The functions of RFC 9535, with the types of what they take and give."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, TypeAlias

from tidings.filters.jsonpath import patterns
from tidings.filters.jsonpath.compiled_path import ABSENT, Operand, PathRun
from tidings.filters.jsonpath.values import JsonKind, kind_of


class Type(Enum):
    """What an expression stands for."""

    VALUE = "a value"
    LOGICAL = "true or false"
    NODES = "a query"


Called: TypeAlias = Callable[[list[Any], PathRun], object]


@dataclass(frozen=True, slots=True)
class StandardFunction:
    """One function: it is called with a value for each VALUE it takes and a list of values for each NODES."""

    takes: tuple[Type, ...]
    gives: Type
    call: Called


def _length(arguments: list[Any], run: PathRun) -> object:
    value = arguments[0]
    return len(value) if kind_of(value) in (JsonKind.TEXT, JsonKind.ARRAY, JsonKind.OBJECT) else ABSENT


def _count(arguments: list[Any], run: PathRun) -> object:
    return len(arguments[0])


def _value(arguments: list[Any], run: PathRun) -> object:
    return arguments[0][0] if len(arguments[0]) == 1 else ABSENT


def _fitting(whole: bool) -> Called:
    def call(arguments: list[Any], run: PathRun) -> object:
        text, pattern = arguments
        if kind_of(text) is not JsonKind.TEXT or kind_of(pattern) is not JsonKind.TEXT:
            return False
        return patterns.tried(patterns.of_document(pattern, whole, run), text, run)

    return call


FUNCTIONS: Final[Mapping[str, StandardFunction]] = {
    "length": StandardFunction((Type.VALUE,), Type.VALUE, _length),
    "count": StandardFunction((Type.NODES,), Type.VALUE, _count),
    "value": StandardFunction((Type.NODES,), Type.VALUE, _value),
    "match": StandardFunction((Type.VALUE, Type.VALUE), Type.LOGICAL, _fitting(whole=True)),
    "search": StandardFunction((Type.VALUE, Type.VALUE), Type.LOGICAL, _fitting(whole=False)),
}


def fitting(name: str, text: Operand, pattern: str) -> Operand:
    """`match` or `search` with a pattern that is known beforehand, and refused when it cannot be one."""
    fits = patterns.standard(pattern, whole=name == "match")

    def call(current: object, run: PathRun) -> object:
        value = text(current, run)
        return isinstance(value, str) and patterns.tried(fits, value, run)

    return call


def calling(function: StandardFunction, arguments: list[Operand]) -> Operand:
    def call(current: object, run: PathRun) -> object:
        run.work.spend()
        return function.call([argument(current, run) for argument in arguments], run)

    return call
