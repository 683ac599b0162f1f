"""How long to wait after something went wrong (FCL-09, FCL-18). Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits that double from `first` to `most` seconds."""

    first: float = 1.0
    most: float = 60.0

    def plain(self, tries: int) -> float:
        """The wait after so many failures in a row."""
        return min(self.most, self.first * 2.0 ** min(tries, 30))

    def jittered(self, tries: int, chance: float, retry_after: float | None = None) -> float:
        """The same, spread over its upper half by `chance` (0 to 1), and never less than what the server asked for."""
        return max(self.plain(tries) * (0.5 + chance / 2), retry_after or 0.0)
