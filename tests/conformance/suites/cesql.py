"""The CESQL conformance kit: files of expressions with an event, the value and the kind of error that are expected."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from tests.conformance.suites import Case, Difference, NotThisFormat, case_of
from tidings.errors import FilterSyntaxError
from tidings.filters.cesql import evaluate, parse

DEFAULT_EVENT: Mapping[str, Any] = {
    "specversion": "1.0",
    "id": "an-id",
    "source": "http://localhost/source",
    "type": "a.type",
}

KNOWN_DIFFERENCES: Mapping[str, tuple[Any, str | None]] = {"not_operator.yaml: Invalid int cast": (False, None)}
"""Cases in which the kit contradicts the text of the specification, with what the text says: an Integer casts to Boolean, so
`NOT 10` is false without an error (X-31). The runner counts such a case as failed; our own tests expect this answer."""


class _Plain(yaml.SafeLoader):
    """Resolves booleans and decimal integers on plain scalars; everything else stays text, timestamps too."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}


class _Text(yaml.SafeLoader):
    """Resolves nothing: every scalar is text."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}


_Plain.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("(?i:true|false)$"), list("tTfF"))
_Plain.add_implicit_resolver("tag:yaml.org,2002:int", re.compile("[-+]?[0-9]+$"), list("-+0123456789"))
_Plain.add_constructor("tag:yaml.org,2002:int", lambda loader, node: int(loader.construct_scalar(node)))


def cases(file: Path) -> Iterator[Case]:
    try:
        text = file.read_text("utf-8")
        tests, texts = yaml.load(text, _Plain), yaml.load(text, _Text)
    except yaml.YAMLError as error:
        raise NotThisFormat(f"it is no YAML: {error}") from error
    if not isinstance(tests, dict) or not isinstance(tests.get("tests"), list):
        raise NotThisFormat("it has no list `tests`")
    for number, (test, written) in enumerate(zip(tests["tests"], texts["tests"], strict=True)):
        found = case_of(test, f"tests-{number}", lambda test, written=written: difference(written["expression"], test))  # type: ignore[misc]
        yield replace(found, id=f"{file.name}: {found.id}")


def difference(expression: str, test: dict[str, Any]) -> Difference | None:
    value, error = answer(expression, event_of(test))
    expected = (test.get("result", value), test.get("error"))
    return None if same(expected[0], value) and expected[1] == error else (expected, (value, error))


def event_of(test: dict[str, Any]) -> dict[str, Any]:
    return dict(test.get("event") or DEFAULT_EVENT) | dict(test.get("eventOverrides") or {})


def answer(expression: str, event: Mapping[str, Any]) -> tuple[Any, str | None]:
    """The value and the kind of error; a text that cannot be parsed is false with the error `parse`."""
    try:
        parsed = parse(expression)
    except FilterSyntaxError:
        return False, "parse"
    value, error = evaluate(parsed, event)
    return value, None if error is None else str(error)


def same(one: object, other: object) -> bool:
    """Equal in value and type: true is not 1."""
    return type(one) is type(other) and one == other
