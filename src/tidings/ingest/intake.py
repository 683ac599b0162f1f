"""The one way into the log, for every door: admission, schema, line length, duplicates, append, counting.

A door reads its own wire form into events, checks who may publish by its own rules, and hands the events over. What it gets
back is durable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tidings.clock import Instant
from tidings.events.model import Event
from tidings.ingest.admission import Admission, Admissions, drafts_of
from tidings.ingest.counters import PublishCounters
from tidings.ingest.duplicates import Appender, Checked, DuplicateCheck
from tidings.log.position import Position
from tidings.registry.model import Name


@dataclass(frozen=True, slots=True)
class Submission:
    """The events of one request to one topic.

    `payloads`: what the door has parsed of the payloads already, so that a schema is checked without parsing them again;
    `UNCHECKED` for a payload that the schema does not apply to. None: the door has parsed nothing.
    `schema_version`: the version of the topic's Avro schema that the publisher names; None: the newest.
    """

    admission: Admission
    events: Sequence[Event]
    at: Instant
    payloads: Sequence[Any] | None = None
    schema_version: int | None = None


@dataclass(frozen=True, slots=True)
class Intake:
    """Takes events into the log. One per api process; belongs to one event loop."""

    admissions: Admissions
    log: Appender
    duplicates: DuplicateCheck
    tally: PublishCounters

    def admission(self, topic: str | Name) -> Admission:
        """What a topic asks of its publishers. Raises NotFound, and Malformed for a text that is not a name."""
        return self.admissions.of(topic)

    async def accept(self, submission: Submission) -> Sequence[Position]:
        """Append all events or none; durable when it returns. Events that the topic has already are left out of the answer.

        Raises InvalidEvent where the topic's schema does not hold, Malformed for an unknown version of it, TooLarge,
        DuplicateEvent for other content under a known id, and Unavailable when the log cannot take them now.
        Calling it twice appends twice unless the topic looks for duplicates.
        """
        admission, events = submission.admission, submission.events
        if admission.avro is not None:
            events = admission.avro.admitted(events, submission.schema_version)
        drafts = drafts_of(admission, events, submission.at, submission.payloads)
        if not drafts:
            return ()
        if admission.window is None:
            return await self.log.append(drafts)
        return await self.duplicates.append(Checked(admission.number, admission.window, events, drafts))

    def count(self, admission: Admission, events: int, stored: int, seconds: float) -> None:
        """Count a request that was answered: `events` were accepted within `seconds`, `stored` of them were new."""
        self.tally.published(admission.label, events, seconds)
        if stored < events:
            self.tally.repeated(admission.label, events - stored)

    def refuse(self, code: str) -> None:
        """Count a request that was refused."""
        self.tally.refused(code)
