"""Owners (HER-25, HER-28): the one source is `Plaintext`, which takes every text."""

from __future__ import annotations

from typing import Any

from tidings.doors.hermes.documents.fields import Fields

PLAINTEXT = "Plaintext"
SOURCES = ({"name": PLAINTEXT, "autocomplete": False, "deprecated": False},)


def owner(fields: Fields) -> dict[str, Any]:
    """The owner that a topic or subscription names."""
    member = fields.below("owner", needed=True)
    if fields.raw.get("owner") is None:
        return {}
    source, name = member.text("source", needed=True), member.text("id", needed=True)
    if source and source != PLAINTEXT:
        member.fault("source", f"Owner source '{source}' doesn't exist")
    return {"source": source, "id": name}
