"""Requests made up from an OpenAPI document by schemathesis, sent to a running api: what is answered must be what is promised.

Many of them are about things that exist, so that more than refusals is tried.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode, checks

# A 5xx that the document does not name is an undocumented status.
CHECKS = [
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.response_headers_conformance,
]
METHODS = ("get", "put", "post", "delete", "patch", "head", "options")


def operations(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Path and method of each operation."""
    for path, item in document["paths"].items():
        yield from ((path, method) for method in METHODS if method in item)


def conforms(document: Mapping[str, Any], url: str, known: Mapping[str, list[str]], examples: int) -> None:
    """Try every operation with so many requests each: about things that exist, about others, and against the document."""
    free, named = _loaded(document, url), _loaded(_with_known(document, known), url)
    # What exists is used before it is deleted.
    for path, method in sorted(operations(document), key=lambda one: one[1] == "delete"):
        _try(named[path][method.upper()].as_strategy(), examples)
        _try(free[path][method.upper()].as_strategy(), examples // 3)
        with suppress(Unsatisfiable):
            _try(named[path][method.upper()].as_strategy(GenerationMode.NEGATIVE), examples // 2)


def _loaded(document: Mapping[str, Any], url: str) -> Any:
    schema = schemathesis.openapi.from_dict(dict(document))
    schema.config.update(base_url=url)
    return schema


def _try(requests: Any, examples: int) -> None:
    @seed(20)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=requests)
    def run(case: Any) -> None:
        case.call_and_validate(checks=CHECKS, timeout=120)

    run()


def _with_known(document: Mapping[str, Any], known: Mapping[str, list[str]]) -> dict[str, Any]:
    """The document with nothing but these values for parameters and members of bodies; parameters without any are left out."""
    found: dict[str, Any] = copy.deepcopy(dict(document))
    for path, method in operations(found):
        operation = found["paths"][path][method]
        for holder in (found["paths"][path], operation):
            given = [one for one in holder.get("parameters", ()) if known.get(one["name"], [None])]
            for parameter in given:
                if parameter["name"] in known:
                    parameter["schema"] = {"enum": known[parameter["name"]]}
            holder["parameters"] = given
        for content in operation.get("requestBody", {}).get("content", {}).values():
            members = content.get("schema", {}).get("properties", {})
            members |= {name: {"enum": known[name]} for name in members if name in known}
    return found
