"""EventSpecification documents: the rules of HOR-15 to HOR-18, and what one comes to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from tidings.doors.horizon.documents.findings import DocumentPart
from tidings.errors import Malformed
from tidings.events.schema import Schema

MEMBERS = ("type", "version", "description", "specification", "category")
LONGEST_TYPE = 253
DRAFT = "https://json-schema.org/draft/2019-09/schema"

_TYPE = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9.-]*", re.ASCII)
_VERSION_PART = re.compile(r"v([0-9]+)", re.ASCII)
_CATEGORY = re.compile(r"[a-z]+", re.ASCII)


class Specification(msgspec.Struct, frozen=True, kw_only=True):
    """An event type as its specification describes it."""

    name: str
    type: str
    version: str
    description: str
    schema: Mapping[str, Any] | None = None


def specification(place: DocumentPart) -> Specification | None:
    """The specification of this document; None when it has faults, which `place` then holds."""
    name, spec = place.member("metadata").member("name"), place.member("spec")
    written = name.text()
    if not spec.is_object():
        return None
    spec.only(MEMBERS)
    type_place = spec.member("type")
    event_type = type_text(type_place)
    if event_type is not None:
        _check_version_part(type_place, event_type)
        expected = event_type.replace(".", "-")
        if written is not None and written != expected:
            name.fault(f"must be the type with dashes for dots: {expected}")
    version = _version(spec, event_type)
    description = spec.member("description").text()
    schema = _schema(spec.member("specification"))
    category = spec.member("category").text(needed=False)
    if category is not None and not _CATEGORY.fullmatch(category):
        spec.member("category").fault("must be lower-case letters")
    if place.findings.faults or not (written and event_type and version and description):
        return None
    return Specification(name=written, type=event_type, version=version, description=description, schema=schema)


def type_text(place: DocumentPart) -> str | None:
    """The name of an event type."""
    text = place.text()
    if text is None:
        return None
    if len(text) > LONGEST_TYPE or not _TYPE.fullmatch(text):
        place.fault(f"must have at most {LONGEST_TYPE} letters, digits, dots and dashes, and begin with a letter or digit")
        return None
    if "" in text.split("."):
        place.slip("has a part without a name: there is nothing before, between or after some of its dots")
        return text if place.findings.stands else None
    return text


def version_in(event_type: str) -> int | None:
    """The version that a type names, such as 1 in `orders.v1`."""
    found = next((part for word in event_type.split(".") if (part := _VERSION_PART.fullmatch(word))), None)
    return None if found is None else int(found[1])


def _check_version_part(place: DocumentPart, event_type: str) -> None:
    if version_in(event_type) is None:
        place.fault("must hold a version as one of its parts, such as foo.bar.v1 or foo.v1.bar")


def _version(spec: DocumentPart, event_type: str | None) -> str | None:
    place = spec.member("version")
    if isinstance(place.raw, (int, float)) and not isinstance(place.raw, bool):
        # `version: 1.0` without quotes is a number in YAML, and clearly meant as this text.
        place = DocumentPart(str(place.raw), place.path, place.findings)
    version = place.text()
    if version is None:
        return None
    if not version[0].isdigit():
        place.fault("must begin with a digit, such as 1.0.0")
        return None
    major = version_in(event_type) if event_type else None
    digits = re.match(r"[0-9]+", version)
    if major is not None and digits is not None and int(digits[0]) != major:
        place.warn(f"says {version}, the type says v{major}")
    return version


def _schema(place: DocumentPart) -> Mapping[str, Any] | None:
    if not place.given:
        return None
    if not isinstance(place.raw, Mapping):
        place.fault("must be a JSON Schema, which is an object")
        return None
    schema = dict(place.raw) if "$schema" in place.raw else {"$schema": DRAFT, **place.raw}
    try:
        Schema.compiled(schema)
    except Malformed as error:
        place.fault(str(error))
        return None
    return schema
