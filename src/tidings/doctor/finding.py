"""What one look found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class DoctorVerdict(StrEnum):
    """How bad it is: a hub starts with OK and DOUBTFUL, and refuses or fails with WRONG."""

    OK = "ok"
    DOUBTFUL = "doubtful"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """One thing that was looked at. `remedy` says what to do unless it is OK."""

    subject: str
    verdict: DoctorVerdict
    found: str
    remedy: str = ""


def at_least(subject: str, found: str, *, enough: bool, sufficient: bool, remedy: str) -> DoctorFinding:
    """OK when there is enough, DOUBTFUL when it is merely sufficient, WRONG otherwise."""
    verdict = DoctorVerdict.OK if enough else DoctorVerdict.DOUBTFUL if sufficient else DoctorVerdict.WRONG
    return DoctorFinding(subject, verdict, found, "" if enough else remedy)
