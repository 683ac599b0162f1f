"""Commands travel as entries of the log's own stream."""

from __future__ import annotations

import pytest

from tidings.clock import Instant
from tidings.log.commands import Activate, Command, DropDeadLetters, Redeliver, Rewind, Suspend, decoded, encoded
from tidings.log.position import COMMANDS, EMBEDDED, LaneNumber, Offset, Position, embedded

HERE = Position(EMBEDDED, Offset(7))


@pytest.mark.parametrize(
    "act",
    [
        Suspend(),
        Activate(),
        Rewind(to=embedded(5)),
        Redeliver(positions=(HERE,)),
        Redeliver(dead_letters=True),
        DropDeadLetters(positions=(HERE,)),
        DropDeadLetters(),
    ],
)
def test_a_command_comes_back_as_it_was_sent(act: Suspend) -> None:
    command = Command(id="c1", lane=LaneNumber(4), by="anna", act=act)
    draft = encoded(command, Instant(9))
    assert (draft.topic, draft.at) == (COMMANDS, 9)
    assert decoded(draft.head) == command
