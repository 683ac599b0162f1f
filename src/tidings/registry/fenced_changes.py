"""Changes of the registry between two commits of the embedded log, stamped with the last committed position."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tidings.log.port import LogWriter
from tidings.log.position import Marks
from tidings.registry.model import Snapshot
from tidings.registry.port import Document, RegistryWriter, WantedChange


class FencedChanges:
    """`Changes` over the log's one writer. `in_force` is called between the two commits: nobody can have read an event after
    the change by what was in force before it.
    """

    def __init__(self, log: LogWriter, registry: RegistryWriter, in_force: Callable[[], object]) -> None:
        self._log = log
        self._registry = registry
        self._in_force = in_force

    async def change(self, plan: Callable[[Snapshot, Marks], WantedChange]) -> Sequence[Document]:
        """See `Changes.change`."""

        def settle(marks: Marks) -> Sequence[Document]:
            wanted = plan(self._registry.snapshot(), marks)
            changed = self._registry.change(wanted.puts, wanted.endings, by=wanted.by, at=wanted.at, marks=marks)
            self._in_force()
            return changed.stored

        return await self._log.fence(settle)

    async def forget(self, below: Marks) -> int:
        """See `Changes.forget`."""
        return await self._log.fence(lambda marks: self._registry.forget(below))
