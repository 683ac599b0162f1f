"""Writes a filter in the `where` language, which can say every plain form."""

from __future__ import annotations

from tidings.filters.algebra import Filter
from tidings.filters.conversion.differences import Differences
from tidings.filters.dialects.printer import printed


def written(filter: Filter, differences: Differences) -> str:
    """The filter as text."""
    return printed(filter)
