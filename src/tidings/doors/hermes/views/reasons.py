"""Why an attempt failed, in Hermes' words (HER-145)."""

from __future__ import annotations

from tidings.delivery.push.records.causes import TIMEOUTS, sentence

_STATUS = "status-"


def reason_of(cause: str) -> str:
    """What a cause of the hub's records says to a person who knows Hermes."""
    # The cause of the last attempt; why there is no further one comes after it.
    cause = cause.partition("; ")[0]
    word = cause.partition(" ")[0]
    if word.startswith(_STATUS):
        return f"Message sending failed with status code:{word.removeprefix(_STATUS)}"
    if word in TIMEOUTS:
        return "Total timeout elapsed"
    return sentence(cause)
