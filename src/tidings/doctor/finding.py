"""What one look found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """How bad it is: a hub starts with OK and DOUBTFUL, and refuses or fails with WRONG."""

    OK = "ok"
    DOUBTFUL = "doubtful"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. `remedy` says what to do unless it is OK."""

    subject: str
    verdict: Verdict
    found: str
    remedy: str = ""


def at_least(subject: str, found: str, *, enough: bool, sufficient: bool, remedy: str) -> Finding:
    """OK when there is enough, DOUBTFUL when it is merely sufficient, WRONG otherwise."""
    verdict = Verdict.OK if enough else Verdict.DOUBTFUL if sufficient else Verdict.WRONG
    return Finding(subject, verdict, found, "" if enough else remedy)
