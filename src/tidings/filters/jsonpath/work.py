"""How much one evaluation may do: nodes visited, values compared, text searched. Counted, so that it is the same on any machine."""

from __future__ import annotations

LIMIT = 100_000
_BYTES_A_UNIT = 256


class WorkExceeded(Exception):
    """A path would have to look at more than it may. Whoever evaluates it says "no match", with this as the cause."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"the path looks at more than {limit} values of this document")
        self.limit = limit


class Work:
    """A budget that everything in one evaluation shares: deep scans, nested predicates, comparisons. Not for two threads."""

    __slots__ = ("left", "limit")

    def __init__(self, limit: int = LIMIT) -> None:
        self.limit = limit
        self.left = limit

    @property
    def spent(self) -> int:
        return self.limit - self.left

    def spend(self, units: int = 1) -> None:
        """Take so many units, one for each value looked at. Raises WorkExceeded when there are not as many."""
        self.left -= units
        if self.left < 0:
            raise WorkExceeded(self.limit)

    def spend_on(self, one: object, other: object) -> None:
        """Take what it costs to compare two scalars: long texts and numbers of many digits cost more."""
        self.spend(1 + min(one.__sizeof__(), other.__sizeof__()) // _BYTES_A_UNIT)
