"""What an answer means, as a table: an exact status, else its class, else `*`. No answer at all is `none`, else `*`."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec


class Meaning(StrEnum):
    """What follows from an answer.

    delivered   done
    retry       try the event again after the back-off
    wait        the same, but not before the time that Retry-After names
    pause       the same, and nothing else of the lane is sent before that time either
    give-up     a dead letter at once
    disable     the subscription is disabled; the event waits with the rest of its lane
    """

    DELIVERED = "delivered"
    RETRY = "retry"
    WAIT = "wait"
    PAUSE = "pause"
    GIVE_UP = "give-up"
    DISABLE = "disable"


class Answers(msgspec.Struct, frozen=True):
    """One policy's table, made by `answers_of`; every status has a meaning."""

    by_status: Mapping[int, Meaning]
    by_class: Mapping[int, Meaning]
    none: Meaning
    other: Meaning

    def meaning(self, status: int | None) -> Meaning:
        """What this status means; None: no answer came."""
        if status is None:
            return self.none
        exact = self.by_status.get(status)
        return exact if exact is not None else self.by_class.get(status // 100, self.other)


def answers_of(*tables: Mapping[str, str]) -> Answers:
    """The table that these written ones come to, later ones over earlier ones. An own `*` leaves exact rules in force."""
    rules: dict[str, Meaning] = {}
    for table in tables:
        rules |= {answer: Meaning(word) for answer, word in table.items()}
    other = rules.pop("*", Meaning.WAIT)
    none = rules.pop("none", other)
    return Answers(
        by_status={int(answer): meaning for answer, meaning in rules.items() if answer.isdigit()},
        by_class={int(answer[0]): meaning for answer, meaning in rules.items() if answer.endswith("xx")},
        none=none,
        other=other,
    )
