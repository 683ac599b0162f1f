"""What all wire shapes of the native door share: lower camelCase members, and unknown ones refused with the nearest known name."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from tidings import config
from tidings.clock import Instant, rfc3339
from tidings.errors import Malformed, NotFound
from tidings.registry.model import Name
from tidings.registry.rules import parse_name

LARGEST = (1 << 63) - 1

Number = Annotated[int, Field(ge=0, le=LARGEST)]
"""The number of something: a dead letter, a revision."""


class Wire(BaseModel):
    """A JSON object of this API. Every member is documented; an unknown one is an error, never a guess."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="forbid",
        frozen=True,
        serialize_by_alias=True,
        validate_by_name=True,
        validate_by_alias=True,
    )

    @model_validator(mode="before")
    @classmethod
    def _known_members(cls, given: Any) -> Any:
        if isinstance(given, Mapping):
            known = {field.alias or name for name, field in cls.model_fields.items()}
            for member, value in given.items():
                if member not in known and member not in cls.model_fields:
                    raise PydanticCustomError(
                        "unknown-member", "{sentence}", {"sentence": _unknown(str(member), sorted(known))}
                    )
                if any(map(_beyond, value if isinstance(value, list) else (value,))):
                    raise PydanticCustomError("number", "{member} is a number beyond 64 bits", {"member": str(member)[:80]})
        return given


def _beyond(value: object) -> bool:
    """Whether it is an integer that no file of the hub could hold."""
    return isinstance(value, int) and not -LARGEST <= value <= LARGEST


def _unknown(member: str, known: list[str]) -> str:
    near = difflib.get_close_matches(member, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
    return f"there is no member {member[:80]!r}; {hint}"


def _duration(value: Any) -> Any:
    try:
        return None if value is None else float(config.seconds(value))
    except ValueError as error:
        raise PydanticCustomError("duration", 'expected seconds or a duration such as "30s", "10m", "7d"') from error


def _size(value: Any) -> Any:
    try:
        return None if value is None else int(config.size(value))
    except ValueError as error:
        raise PydanticCustomError("size", 'expected bytes or a size such as "64KiB", "1MiB"') from error


Duration = Annotated[float, BeforeValidator(_duration, json_schema_input_type=float | str)]
"""Seconds, or a text such as "30s", "10m", "7d"; answered in seconds."""

Size = Annotated[int, BeforeValidator(_size, json_schema_input_type=int | str)]
"""Bytes, or a text such as "64KiB"; answered in bytes."""

Labels = Annotated[dict[str, str], Field(description="Words of your own; the hub only keeps them.")]


def name_in_path(text: str, kind: str) -> Name:
    """The name of something that should be there: what is no name at all is not there either."""
    try:
        return parse_name(text)
    except Malformed as error:
        raise NotFound(f"there is no {kind} {text[:80]}", expected=error.expected) from error


def same_name(path: str, body: str | None) -> Name:
    """The name to create or replace; a body that says another one contradicts its address."""
    if body is not None and parse_name(body) != parse_name(path):
        raise Malformed("the body names something else than the address", at="name", found=body, expected=path)
    return parse_name(path)


def time_of(instant: Instant | None) -> str | None:
    """An instant as it is shown."""
    return None if instant is None else rfc3339(instant)
