"""Horizon's vectors: filters on events, filter documents, merged scopes and single fields, in the format of `horizon.json`.

What the reference code did is not binding where a vector says so: `java_type_strict` takes the answer by numeric value, and
`quirk` what our rules say instead (`OURS`); a quirk that is not listed only has to be decided without an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec

from tests.conformance.suites import JAVA_REGEX, Case, Difference, NotThisFormat, case_of
from tests.conformance.suites.jsonpath import same
from tidings.doors.horizon.publish.event_fields import problem_of
from tidings.errors import FilterSyntaxError
from tidings.events.model import Event
from tidings.filters import parse
from tidings.filters.dialects.horizon import trace as horizon_trace
from tidings.filters.dialects.horizon import trigger as horizon_trigger
from tidings.filters.dialects.horizon.scopes import DEFAULT, HorizonScope, merged
from tidings.filters.explain import explain
from tidings.filters.payload import UNREADABLE, decoded
from tidings.filters.projection import Projection, Syntax, project

JSON_TYPE = re.compile(r"application/(json|[^;]*\+json)\s*(;.*)?", re.IGNORECASE)
EVALUATION_FAILED = "An exception occurred during the evaluation: \n"
_ITEMS = {"a": 1, "n": None, "o": {"p": 1, "q": 2}, "x.y": "dot"}
_LAST = {"name": "y", "v": 2}

OURS: dict[str, tuple[bool, Any]] = {
    "ex-ctype-vnd-dot": (True, {"a": 1}),
    "ex-empty-response-list-nonjson": (True, "x"),
    "ex-pub-simple-only": (False, None),
    "exs-array-empty": (False, None),
    "exr-array-index": (True, {"items": [{"name": "x"}]}),
    "exr-excl-array-index": (True, _ITEMS | {"items": [{"v": 1}, _LAST]}),
    "exr-excl-array-elem": (True, _ITEMS | {"items": [_LAST]}),
    "exr-root-array-incl": (True, []),
    "exr-root-array-excl": (True, [1, 2]),
    "exr-root-scalar-incl": (True, {}),
    "exr-jp-wild": (True, {"items": [{"name": "x"}, {"name": "y"}]}),
}
"""What our rules say where the reference had an accident: delivered or not, and the payload (HOR-65 to HOR-69, HOR-93, HOR-98)."""

REFUSED_HERE = frozenset({"exp-path-invalid", "exp-and-scalar"})
"""Documents that the reference accepted by accident (HOR-73)."""

_encode = msgspec.json.Encoder(decimal_format="number").encode


def cases(file: Path) -> Iterator[Case]:
    # Numbers keep what was written: 5.0 stays 5.0.
    document = json.loads(file.read_text("utf-8"), parse_float=Decimal)
    kinds = {
        "filter_vectors": filter_difference,
        "parse_vectors": parse_difference,
        "scope_merge_vectors": scope_difference,
        "event_field_validation_vectors": field_difference,
    }
    if not isinstance(document, dict) or not kinds.keys() & document.keys():
        raise NotThisFormat(f"it has none of the lists {', '.join(kinds)}")
    for kind, difference in kinds.items():
        for number, vector in enumerate(document.get(kind) or []):
            yield case_of(vector, f"{kind}-{number}", difference)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of an event for a subscription, in Horizon's words (HOR-66 to HOR-68)."""

    result: str
    payload: Any = None
    trace: dict[str, Any] | None = None

    @property
    def deliver(self) -> bool:
        return self.result in ("MATCH", "NO_FILTER")


def outcome_of(vector: dict[str, Any]) -> Outcome:
    """The publisher's trigger first, then the consumer's on what is left."""
    sides = [(vector.get("publisherTrigger"), "SCOPE_FILTER_ERROR"), (vector.get("trigger"), "CONSUMER_FILTER_ERROR")]
    triggers = [(side, failure) for side, failure in sides if side]
    view = json_view(vector)
    if not triggers or (view is None and not any(any(side.values()) for side, _ in triggers)):
        return Outcome("NO_FILTER", vector["data"])
    if view is None:
        return Outcome("INVALID_PAYLOAD_ERROR", trace=horizon_trace.invalid_payload_trace())
    for side, failure in triggers:
        trace = failed(side, view)
        if trace is not None:
            return Outcome(failure, trace=trace)
        view = projected(side, view, vector.get("jsonPathFeature", False))
    return Outcome("MATCH", decoded(view))


def json_view(vector: dict[str, Any]) -> bytes | None:
    """The payload as JSON, where it is meant as such; a text is parsed (HOR-65)."""
    data, kind = vector["data"], vector.get("datacontenttype")
    if data is None or (kind is not None and not JSON_TYPE.fullmatch(kind.strip())):
        return None
    view: bytes = data.encode() if isinstance(data, str) else _encode(data)
    try:
        decoded(view)
    except UNREADABLE:
        return None
    return view


def failed(side: dict[str, Any], view: bytes) -> dict[str, Any] | None:
    """The trace of a selection that did not match; None when it did."""
    advanced, simple = side.get("advancedSelectionFilter"), side.get("selectionFilter")
    if advanced is None and simple is None:
        return None
    dialect, raw = ("horizon-simple", simple) if advanced is None else ("horizon", advanced)
    told = explain(parse(dialect, raw, JAVA_REGEX), Event({"specversion": "1.0", "id": "1", "source": "/", "type": "t"}, view))
    if told.holds:
        return None
    return horizon_trace.simple_trace(raw, told) if advanced is None else horizon_trace.trace(raw, told)


def projected(side: dict[str, Any], view: bytes, jsonpath: bool) -> bytes:
    chosen = horizon_trigger.parse({**side, "advancedSelectionFilter": None, "selectionFilter": None}).projection
    if chosen is None:
        return view
    # Made without the check of `projection`: a broken path is refused when written, and read as dotted when met (HOR-101).
    made: Projection = replace(chosen, syntax=Syntax.JSONPATH) if jsonpath else chosen
    left = project(made, view)
    assert left is not None
    return left


def filter_difference(vector: dict[str, Any]) -> Difference | None:
    expected, got = vector["expected"], outcome_of(vector)
    if vector.get("quirk"):
        return ours_difference(vector.get("id"), got)
    if vector.get("java_type_strict"):
        wanted = vector.get("lenient_numeric_would_deliver", expected["deliver"])
        return None if got.deliver is wanted else (wanted, got)
    if got.deliver is not expected["deliver"] or got.result != expected.get("result", got.result):
        return expected, got
    if got.deliver and "payload" in expected and not same(expected["payload"], got.payload):
        return expected["payload"], got.payload
    return trace_difference(expected, got.trace or {})


def ours_difference(name: str | None, got: Outcome) -> Difference | None:
    if name is None or name not in OURS:
        return None
    deliver, payload = OURS[name]
    fine = got.deliver is deliver and (not deliver or same(payload, got.payload))
    return None if fine else ((deliver, payload), got)


def trace_difference(expected: dict[str, Any], trace: dict[str, Any]) -> Difference | None:
    """Causes are compared letter by letter, but for the reason of an evaluation that failed in Java (HOR-89).

    One that failed on the types of two numbers is decided here, so that it has another cause altogether.
    """
    if "selectionFilterTrace" in expected and not same(expected["selectionFilterTrace"], trace):
        return expected["selectionFilterTrace"], trace
    wanted, got = expected.get("cause"), trace.get("causeDescription")
    if wanted is None or wanted == got:
        return None
    reason = wanted.removeprefix(EVALUATION_FAILED)
    free = reason != wanted and "did not return a single value" not in reason
    return None if free and (str(got).startswith(EVALUATION_FAILED) or "cannot be cast" in reason) else (wanted, got)


def parse_difference(vector: dict[str, Any]) -> Difference | None:
    name = vector.get("id")
    wanted = "REJECTED" if name in REFUSED_HERE else vector["expected"]["result"]
    try:
        horizon_trigger.parse(vector["trigger"])
        got, why = "ACCEPTED", ""
    except FilterSyntaxError as error:
        got, why = "REJECTED", str(error)
    undecided = vector.get("quirk") and name not in REFUSED_HERE
    return None if (got == "REJECTED") is (wanted == "REJECTED") or undecided else (wanted, f"{got} {why}".strip())


def scope_difference(vector: dict[str, Any]) -> Difference | None:
    scopes, subscribed = [a_scope(raw) for raw in vector.get("scopes") or ()], vector.get("subscribed") or ()
    got = merged(scopes, subscribed).trigger
    # The reference never looked at `default`, against its own documents (HOR-102).
    by_default = not subscribed and any(scope.name == DEFAULT for scope in scopes)
    wanted = merged(scopes, [DEFAULT]).trigger if by_default else vector["expected"]
    return None if same(wanted, got) else (wanted, got)


def a_scope(raw: dict[str, Any]) -> HorizonScope:
    trigger = raw.get("trigger") or {}
    selection, response = trigger.get("selectionFilter") or {}, trigger.get("responseFilter") or {}
    return HorizonScope(
        raw["name"],
        selection.get("attributes"),
        selection.get("expression"),
        tuple(response.get("paths") or ()),
        response.get("mode"),
    )


def field_difference(vector: dict[str, Any]) -> Difference | None:
    problem = problem_of(vector["field"], vector["value"])
    if (problem is None) is vector["expected_valid"]:
        return None
    return ("valid" if vector["expected_valid"] else "invalid"), problem or "valid"
