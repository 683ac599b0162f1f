"""JSON Merge Patch for documents of the native API: their shapes, and unknown members refused."""

from __future__ import annotations

from collections.abc import Mapping
from types import UnionType
from typing import Annotated, Any, TypeVar, get_args

from fastapi import Body
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from tidings.doors.native.bodies.wire import Wire
from tidings.doors.requests.merge_patch import MERGE_PATCH, merged

Patch = Annotated[
    dict[str, Any],
    Body(
        media_type=MERGE_PATCH,
        description="The members to change, as PUT takes them; null: as if it was never given. What is left out stays as it is.",
    ),
]

Shape = TypeVar("Shape", bound=Wire)


def patched(shape: type[Shape], standing: Mapping[str, Any], patch: Mapping[str, Any], whole: frozenset[str]) -> Shape:
    """The document that comes of a patch. `whole`: places such as `schema` that are replaced, never merged; `*` is any member.

    Raises RequestValidationError, as a document that was put would.
    """
    try:
        _refuse_unknown(shape, patch)
        return shape.model_validate(merged(standing, patch, whole))
    except ValidationError as error:
        raise RequestValidationError(error.errors()) from error


def shown(view: Wire, shape: type[Wire], *hidden: str) -> dict[str, Any]:
    """A document as it is shown, without what only the hub says of it (`hidden`): what a patch goes over."""
    members = {field.alias or name for name, field in shape.model_fields.items() if name not in ("name", *hidden)}
    return {name: value for name, value in view.model_dump(mode="json", by_alias=True).items() if name in members}


def _refuse_unknown(shape: type[Wire], patch: Mapping[str, Any]) -> None:
    """A null takes its member away, so an unknown one would never be noticed. Raises ValidationError."""
    known = {key: field for name, field in shape.model_fields.items() for key in (name, field.alias or name)}
    unknown = {member: value for member, value in patch.items() if member not in known}
    if unknown:
        shape.model_validate(unknown)
    for member, value in patch.items():
        inside = _shape_of(known[member].annotation)
        if inside is not None and isinstance(value, dict):
            _refuse_unknown(inside, value)


def _shape_of(annotation: Any) -> type[Wire] | None:
    """The one shape that a member has, where it has one."""
    choices = get_args(annotation) if isinstance(annotation, UnionType) else (annotation,)
    shapes = [one for one in choices if isinstance(one, type) and issubclass(one, Wire)]
    return shapes[0] if len(shapes) == 1 else None
