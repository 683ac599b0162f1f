"""JSON Merge Patch (RFC 7396): what is given changes, null takes away, everything else stays as it is.

written                            means
a value                            the member has it
null                               the member is as if it was never given
an object, where one stands        merged member by member; members that are one whole (a schema, a filter) are replaced
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tidings.doors.registry_changes import Guard
from tidings.errors import Conflict
from tidings.registry.model import Snapshot

MERGE_PATCH = "application/merge-patch+json"


def merged(standing: Mapping[str, Any], patch: Mapping[str, Any], whole: frozenset[str], at: str = "") -> dict[str, Any]:
    """The members after the patch. `whole`: places such as `schema` that are replaced, never merged; `*` is any member."""
    made = dict(standing)
    for member, value in patch.items():
        place = f"{at}{member}"
        if value is None:
            made.pop(member, None)
        elif isinstance(value, dict) and place not in whole and f"{at}*" not in whole:
            before = made.get(member)
            made[member] = merged(before if isinstance(before, dict) else {}, value, whole, f"{place}.")
        else:
            made[member] = value
    return made


def unless_changed(found: Callable[[Snapshot], object], standing: object) -> Guard:
    """Refuses a change when what it was made from is no longer what stands."""

    def guard(now: Snapshot) -> None:
        if found(now) != standing:
            raise Conflict("somebody else changed it at the same time; nothing was changed", expected="to try again")

    return guard
