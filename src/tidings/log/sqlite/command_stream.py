"""Commands as entries of the embedded log: topic 0, which no event is of."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

import msgspec

from tidings.clock import Instant
from tidings.log.commands import Command, CommandPage, decoded, encoded
from tidings.log.port import Entry, Limit, LogWriter
from tidings.log.position import COMMANDS, Marks
from tidings.log.sqlite.reader import SqliteLogReader

logger = logging.getLogger("tidings.delivery")


class SqliteCommandGiver:
    """`CommandGiver` on log.db."""

    def __init__(self, log: LogWriter) -> None:
        self._log = log

    async def give(self, command: Command, at: Instant) -> None:
        """See `CommandGiver.give`."""
        await self._log.append([encoded(command, at)])


class SqliteCommandStream:
    """`CommandStream` on log.db."""

    def __init__(self, log: SqliteLogReader) -> None:
        self._log = log

    async def follow(self, after: Marks, limit: int) -> CommandPage:
        """See `CommandStream.follow`."""
        page = self._log.read(COMMANDS, after, Limit(entries=limit))
        return CommandPage(list(_readable(page.entries)), page.reached if page.entries else after)


def _readable(entries: Sequence[Entry]) -> Iterator[Command]:
    for entry in entries:
        try:
            yield decoded(entry.head)
        except msgspec.MsgspecError as error:
            logger.warning("a command cannot be read and is passed over: %s", error)
