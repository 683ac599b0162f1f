"""Commands to delivery: what the api asks of the one owner of a lane. They travel in a stream of their own, beside the events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeAlias

import msgspec

from tidings.clock import Instant
from tidings.log.port import Draft
from tidings.log.position import COMMANDS, LaneNumber, Marks, Position


class Suspend(msgspec.Struct, frozen=True, tag="suspend", tag_field="act"):
    """Stop reading the lane; what is on its way finishes. Twice is the same as once."""


class Activate(msgspec.Struct, frozen=True, tag="activate", tag_field="act"):
    """Read the lane again from where it stopped. Twice is the same as once."""


class Rewind(msgspec.Struct, frozen=True, tag="rewind", tag_field="act"):
    """Move the lane's cursor so that the next entry is the first one above `to` (back or forward). Nothing is copied."""

    to: Marks


class Redeliver(msgspec.Struct, frozen=True, tag="redeliver", tag_field="act"):
    """Send these entries again, whatever became of them before; dead letters among them are dead no more."""

    positions: tuple[Position, ...] = ()
    dead_letters: bool = False


class DropDeadLetters(msgspec.Struct, frozen=True, tag="drop-dead-letters", tag_field="act"):
    """Forget these dead letters (all of the lane when empty)."""

    positions: tuple[Position, ...] = ()


class CloseBreaker(msgspec.Struct, frozen=True, tag="close-breaker", tag_field="act"):
    """Send what waits behind the lane's breaker now. Twice is the same as once."""


class Disable(msgspec.Struct, frozen=True, tag="disable", tag_field="act"):
    """Send nothing more until it is enabled; the lane is filled all the same. Twice is the same as once."""

    reason: str = "asked"


class Enable(msgspec.Struct, frozen=True, tag="enable", tag_field="act"):
    """Send again: from where it stopped, or (`skip`) only what comes from now on. An enabled lane is left as it is."""

    skip: bool = False


Act: TypeAlias = Suspend | Activate | Rewind | Redeliver | DropDeadLetters | CloseBreaker | Disable | Enable


class Command(msgspec.Struct, frozen=True):
    """One wish about one lane. Applying the same `id` twice changes nothing more."""

    id: str
    lane: LaneNumber
    by: str
    act: Act


class CommandPage(NamedTuple):
    """Some commands in order, and how far the reading came."""

    commands: Sequence[Command]
    reached: Marks


class CommandGiver(Protocol):
    """The giving side of the stream."""

    async def give(self, command: Command, at: Instant) -> None:
        """Give a command; durable when it returns. Giving it twice is harmless: it is applied once. Raises as `append`."""


class CommandStream(Protocol):
    """The following side: every deliver worker reads all of them and applies those of its lanes."""

    async def follow(self, after: Marks, limit: int) -> CommandPage:
        """The next commands; what cannot be read is passed over. Nothing new: the marks are those that were given.

        Raises LogUnavailable.
        """


def encoded(command: Command, at: Instant) -> Draft:
    """The command as it is appended to the log."""
    return Draft(topic=COMMANDS, at=at, key_hash=0, head=msgspec.json.encode(command), data=None)


def decoded(head: bytes) -> Command:
    """The command of an entry of the commands stream."""
    return msgspec.json.decode(head, type=Command)
