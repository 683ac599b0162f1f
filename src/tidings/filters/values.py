"""What paths make of what they find: the scalars among it, the only one, texts."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from tidings.filters.java_text import scalar_text, whole_text
from tidings.filters.payload import MISSING

SCALARS = (str, int, bool, Decimal, float)
_NULL = "null"


def scalars(found: object) -> object:
    """The texts, numbers and booleans in a value or an array, which is opened twice at the most; MISSING stays MISSING."""
    if isinstance(found, list):
        return tuple(_opened(found))
    if found is MISSING:
        return MISSING
    return (found,) if isinstance(found, SCALARS) else ()


def _opened(found: list[object]) -> Iterator[object]:
    for value in found:
        if isinstance(value, SCALARS):
            yield value
        elif isinstance(value, list):
            yield from (inner for inner in value if isinstance(inner, SCALARS))


def only(found: object) -> object:
    """The one scalar, MISSING when there are none or several."""
    if isinstance(found, SCALARS):
        return found
    values = scalars(found)
    return values[0] if isinstance(values, tuple) and len(values) == 1 else MISSING


def member_text(found: object) -> object:
    """The text of a scalar; an array or object stays what it is: there, but no text."""
    text = None if found is MISSING else scalar_text(found)
    return found if text is None else text


def one_text(found: object) -> object:
    """The text of a value; null, which has none, stays null."""
    return MISSING if found is MISSING else whole_text(found)


def all_texts(found: object) -> object:
    """The texts of all values in a list."""
    return tuple(map(whole_text, found)) if isinstance(found, list) else MISSING


def member(value: object, names: tuple[str, ...]) -> object:
    """The value that names lead to; a name of digits counts the elements of an array."""
    for name in names:
        if isinstance(value, dict):
            value = value.get(name, MISSING)
        elif isinstance(value, list) and is_index(name) and int(name) < len(value):
            value = value[int(name)]
        else:
            return MISSING
    return value


def is_index(name: str) -> bool:
    """Whether the name can count elements: digits without a leading zero."""
    return name.isascii() and name.isdecimal() and len(name) < 10 and (name == "0" or name[0] != "0")


def avro_texts(value: object, steps: tuple[str | int | None, ...]) -> object:
    """The texts of what the steps find in a decoded Avro value; what is null at the end has the text `null` (HER-123)."""
    return tuple(_NULL if found is None else whole_text(found) for found in _walked(value, steps))


def avro_text(value: object, steps: tuple[str | int, ...]) -> object:
    """The text of the one value that the steps lead to; MISSING when they lead nowhere."""
    for found in _walked(value, steps):
        return _NULL if found is None else whole_text(found)
    return MISSING


def _walked(value: object, steps: tuple[str | int | None, ...]) -> Iterator[object]:
    for number, step in enumerate(steps):
        if isinstance(step, str) and isinstance(value, dict):
            value = value.get(step)
        elif isinstance(step, int) and isinstance(value, list):
            value = value[step] if step < len(value) else None
        elif step is None and isinstance(value, list):
            for item in value:
                yield from _walked(item, steps[number + 1 :])
            return
        else:
            return
    yield value
