"""The order in which the files of a running hub are pinned: downstream first, so that no file claims more than its source holds.

Delivery state speaks of lanes, lanes and cursors speak of the log, and so does the registry (a change holds from a position).
The log is pinned last; what it holds beyond the others' marks is routed and delivered after a restore.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatch

_ORDER = ("outcomes-*.db", "delivery-*.db", "lanes.db", "*.db", "registry.db", "log.db")
"""From the end of the flow to its beginning; `*.db` is whatever else speaks of positions."""

REGISTRY, LOG = "registry.db", "log.db"

_SKIPPED = ("hub.lock", "*.db-wal", "*.db-shm", "*.db-journal", "*.db.*", "*.new", "*.lock", "*.life", ".*")


def pin_order(names: Iterable[str]) -> list[str]:
    """The database files among `names`, in the order in which to pin them."""
    return sorted((name for name in names if name.endswith(".db")), key=lambda name: (_place(name), name))


def plain_files(names: Iterable[str]) -> list[str]:
    """The small files among `names` that are simply copied: the version, keys.

    Not locks, nor what SQLite keeps beside a file, nor the life of the log: a restored one begins another.
    """
    return sorted(name for name in names if not name.endswith(".db") and not any(fnmatch(name, skip) for skip in _SKIPPED))


def _place(name: str) -> int:
    exact = [place for place, pattern in enumerate(_ORDER) if pattern != "*.db" and fnmatch(name, pattern)]
    return exact[0] if exact else _ORDER.index("*.db")
