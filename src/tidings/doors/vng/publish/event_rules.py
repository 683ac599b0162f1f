"""The rules for an event that is published (VNG-01 to VNG-04, VNG-19 to VNG-23, VNG-45, VNG-50 to VNG-58). Pure.

Every rule looks at one member; what holds over several comes last. All faults of an event are found, not only the first.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Mapping, Set
from typing import Any, NamedTuple, TypeAlias

from tidings.doors.vng.names import uuid_of
from tidings.doors.vng.refusals import MANY, param
from tidings.errors import EventFault, shortened
from tidings.events import content_types
from tidings.events.attribute_names import attribute_key
from tidings.events.attribute_rules import Problem, rule_of, text_problem
from tidings.events.uris import is_uri

REFERENCE = "subscriberReference"
REFERENCE_KEY = "subscriberreference"
REQUIRED = ("id", "source", "domain", "specversion", "type")
NAME_CHARACTERS = 256

_REQUIRED = frozenset(REQUIRED)

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")

Rule: TypeAlias = Callable[[Any], Problem | None]

_media_type = rule_of("datacontenttype")


class EventChoices(NamedTuple):
    """What the settings say about events."""

    dataref_only: bool = False
    urn_sources: bool = False


def _subscription(value: object) -> Problem | None:
    if isinstance(value, str) and uuid_of(value):
        return None
    return "invalid", f"expected a UUID, found {shortened(value)}"


def _uri(value: object) -> Problem | None:
    problem = text_problem(value)
    if problem is None and not is_uri(str(value)):
        return "invalid", f"{shortened(value)} is not a URI"
    return problem


def _sequencetype(value: object) -> Problem | None:
    return None if value == "Integer" else ("invalid", f"expected Integer, found {shortened(value)}")


def _datacontenttype(value: object) -> Problem | None:
    if value == content_types.JSON:
        return None
    problem = _media_type(value)
    if problem is None and content_types.essence_of(str(value)) != content_types.JSON:
        return "invalid", f"expected application/json, found {shortened(value)}"
    return problem


_RULES: Mapping[str, Rule] = {
    **{name: rule_of(name) for name in ("specversion", "id", "source", "type", "time", "subject", "dataschema")},
    **dict.fromkeys(("domain", "sequence", REFERENCE, REFERENCE_KEY), text_problem),
    "subscription": _subscription,
    "datacontenttype": _datacontenttype,
    "dataref": _uri,
    "sequencetype": _sequencetype,
}
_PAYLOAD = ("data", "data_base64")
_SPELLED = {name.lower(): name for name in (*_RULES, *_PAYLOAD) if name != REFERENCE_KEY}
_UNUSUAL = _RULES.keys() - {*REQUIRED, "time", "datacontenttype", "subject", "dataschema"}


def is_sound(members: Mapping[str, Any], allowed: Set[str] | None, choices: EventChoices) -> bool:
    """Whether nothing is wrong, for the usual event: the quick look, for the hot path. False: look with `faults_of`."""
    if "data" not in members or "data_base64" in members or choices.urn_sources or not _UNUSUAL.isdisjoint(members):
        return False
    known = 0
    for name, value in members.items():
        rule = _RULES.get(name)
        if rule is not None:
            if value is None or rule(value) is not None:
                return False
            known += name in _REQUIRED
        elif name != "data" and (
            allowed is None or name not in allowed or not isinstance(value, str) or text_problem(value) is not None
        ):
            return False
    return known == len(_REQUIRED)


def faults_of(
    members: Mapping[str, Any], allowed: Set[str] | None, choices: EventChoices = EventChoices()
) -> Iterator[EventFault]:
    """What is wrong with an event. `allowed`: the keys of the domain's filterAttributes; None: every attribute is allowed."""
    extras = 0
    for name, value in members.items():
        rule = _RULES.get(name)
        if rule is None:
            if name not in _PAYLOAD:
                extras += 1
                yield from _extra(name, value, allowed)
        elif value is None:
            if name in REQUIRED:
                yield param(name, "required", "it is required, and null is not allowed")
        elif (problem := rule(value)) is not None:
            yield param(name, "invalid", problem[1])
    for name in REQUIRED:
        if name not in members:
            yield param(name, "required", "it is required")
    if extras > 1 or (extras and REFERENCE_KEY in members):
        yield from _twins(members)
    yield from _payload(members, choices)
    if not _UNUSUAL.isdisjoint(members):
        yield from _together(members)
    if choices.urn_sources and not str(members.get("source", "")).startswith("urn:nld:"):
        yield param("source", "invalid", "expected a URN that begins with urn:nld:")


def _extra(name: str, value: object, allowed: Set[str] | None) -> Iterator[EventFault]:
    shown = shortened(name)[1:-1] if len(name) > 80 or not name.isprintable() else name
    known = _SPELLED.get(name.lower())
    if known is not None:
        yield param(shown, "invalid", f"this attribute is written {known}")
        return
    if not name or len(name) > NAME_CHARACTERS or _CONTROL.search(name):
        told = f"the name of an attribute has 1 to {NAME_CHARACTERS} characters and no control characters"
        yield param(shown, "unknown-attribute", told)
    elif allowed is not None and attribute_key(name) not in allowed:
        yield param(shown, "unknown-attribute", "the filterAttributes of the domain do not list this attribute")
    if value is None:
        return
    if not isinstance(value, str):
        yield param(shown, "invalid", f"expected a text, found {shortened(value)}")
    elif value and (problem := text_problem(value)) is not None:
        yield param(shown, "invalid", problem[1])


def _twins(members: Mapping[str, Any]) -> Iterator[EventFault]:
    """Names that differ in letter case only (VNG-53)."""
    seen: dict[str, str] = {}
    for name in members:
        key = attribute_key(name)
        if key in seen and {name, seen[key]} != {REFERENCE, REFERENCE_KEY}:
            yield param(name, "invalid", f"{shortened(seen[key])} is the same name in another letter case; give one of them")
        seen.setdefault(key, name)


def _payload(members: Mapping[str, Any], choices: EventChoices) -> Iterator[EventFault]:
    encoded = members.get("data_base64")
    if "data" in members:
        if encoded is not None:
            yield param(MANY, "xor", "data and data_base64 exclude each other")
    elif encoded is None:
        if not (choices.dataref_only and members.get("dataref") is not None):
            yield param(MANY, "xor", "either data or data_base64 is required")
    elif bytes_of(encoded) is None:
        yield param("data_base64", "invalid-value", "expected a text in base64")


def bytes_of(encoded: object) -> bytes | None:
    """The bytes that are written in base64; None where they are not."""
    try:
        return base64.b64decode(encoded, validate=True) if isinstance(encoded, str) else None
    except (binascii.Error, ValueError):
        return None


def _together(members: Mapping[str, Any]) -> Iterator[EventFault]:
    if (members.get("sequence") is None) is not (members.get("sequencetype") is None):
        yield param(MANY, "sequence-pair", "sequence and sequencetype go together: give both or neither")
    if REFERENCE in members and REFERENCE_KEY in members:
        yield param(REFERENCE_KEY, "invalid", f"this is {REFERENCE} written otherwise; give one of them")
