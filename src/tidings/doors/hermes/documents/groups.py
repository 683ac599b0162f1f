"""Groups: a name, and nothing else that has an effect (HER-03, HER-10). Pure."""

from __future__ import annotations

import re
from typing import Any

from tidings.doors.hermes.documents.fields import fields_of, refuse_faults
from tidings.doors.hermes.refusals import ErrorCode, refused
from tidings.registry.rules.names import name_fault

_KEPT = ("supportTeam", "technicalOwner", "contact")


def group_document(raw: object, pattern: str) -> dict[str, Any]:
    """A group's document, checked. Raises HermesRefused."""
    fields = fields_of(raw, "Group")
    name = fields.text("groupName", needed=True)
    refuse_faults(fields)
    check_group_name(name, pattern)
    return {"groupName": name, **{one: value for one in _KEPT if isinstance(value := fields.raw.get(one), str)}}


def check_group_name(name: str, pattern: str) -> None:
    """Raise GROUP_NAME_IS_INVALID unless the name fits the hub's pattern and can stand in a topic's name."""
    fault = f"it must match {pattern}" if not re.search(pattern, name) else name_fault(name)
    if fault:
        raise refused(ErrorCode.GROUP_NAME_IS_INVALID, f"Group name {name[:80]} is invalid: {fault}")
