"""Admission: may these events enter this topic? Pure. What a topic asks for is compiled once per revision of the registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from tidings.access.principals import Principal, Right
from tidings.clock import Instant
from tidings.config import IngestSettings, TopicSettings
from tidings.errors import EventFault, Forbidden, InvalidEvent, NotFound, TooLarge
from tidings.events.headers import RawHeaders
from tidings.events.json_lines import compact_event, on_one_line
from tidings.events.limits import Limits
from tidings.events.model import Event, key_hash, partition_key
from tidings.events.plain import Unnamed, published
from tidings.events.schema import Schema
from tidings.events.stored import head_of
from tidings.ids import NewId
from tidings.ingest.avro_payloads import AdmittedAvro
from tidings.ingest.duplicates import window_of
from tidings.log.port import Draft
from tidings.log.position import TopicNumber
from tidings.registry.feeds import LONGEST_LINE, V1_FRAME, V2_FRAME, FeedVersions, LineLimit, TopicFeed, V1Data
from tidings.registry.model import Exposure, Name, Snapshot, Topic
from tidings.registry.rules import may_publish, parse_name


@dataclass(frozen=True, slots=True)
class Admission:
    """What one topic asks of its publishers. `window`: how far back duplicates are looked for, None for not at all.

    `longest_event`: how long an event may be as compact JSON where the topic's feed has a limit.
    `source` is given to plain events, which name none themselves; `largest_body` bounds a request, single event or batch.
    `labels` are the topic's own, for doors that have rules about them. `avro`: what payloads become where they are Avro.
    """

    name: Name
    label: str
    source: str
    largest_body: int
    number: TopicNumber
    limits: Limits
    key_attribute: str
    schema: Schema | None
    window: float | None
    exposure: Exposure | None
    longest_event: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    avro: AdmittedAvro | None = None


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request as it came: who sent it and when, headers, body, and how ids are made for events without."""

    by: Principal
    at: Instant
    headers: RawHeaders
    body: bytes
    new_id: NewId


class Admissions:
    """The admissions of all topics, made when first asked for and kept until the registry has another revision."""

    def __init__(self, current: Callable[[], Snapshot], topics: TopicSettings, ingest: IngestSettings) -> None:
        self._current = current
        self._topics = topics
        self._limits = Limits(batch_events=ingest.batch_events, batch_bytes=ingest.batch_bytes).keeping(
            ingest.transport_headers
        )
        self._snapshot: Snapshot | None = None
        self._made: dict[str | Name, Admission] = {}

    def of(self, name: str | Name) -> Admission:
        """The admission of a topic, by its name or its name as text. Raises NotFound, and Malformed for a text that is not one."""
        snapshot = self._current()
        if snapshot is not self._snapshot:
            self._snapshot, self._made = snapshot, {}
        found = self._made.get(name)
        if found is None:
            found = self._made[name] = self._make(snapshot, parse_name(name) if isinstance(name, str) else name)
        return found

    def _make(self, snapshot: Snapshot, name: Name) -> Admission:
        topic = snapshot.topics.get(name)
        if topic is None:
            raise NotFound(f"there is no topic {name}; create it with PUT /api/topics/{name}")
        return admission_of(topic, snapshot.exposures.get(name), self._topics, self._limits)


def admission_of(topic: Topic, exposure: Exposure | None, defaults: TopicSettings, limits: Limits) -> Admission:
    """The admission of a topic; what the topic leaves open comes from the hub's settings."""
    largest = topic.max_event_bytes if topic.max_event_bytes is not None else defaults.max_event_bytes
    return Admission(
        name=topic.name,
        label=str(topic.name),
        source=f"/api/topics/{topic.name}",
        largest_body=max(largest, limits.batch_bytes),
        number=topic.number,
        limits=msgspec.structs.replace(limits, max_event_bytes=largest),
        key_attribute=topic.key_attribute,
        schema=None if topic.schema is None else Schema.compiled(topic.schema),
        window=window_of(topic.duplicates or defaults.duplicates),
        exposure=exposure,
        longest_event=_longest_event(topic.feed),
        labels=topic.labels,
        avro=None if topic.avro is None else AdmittedAvro(topic.avro),
    )


def _longest_event(feed: TopicFeed) -> int | None:
    """What fits on a line of the feed with its frame (FEED-22)."""
    if feed.line_limit is not LineLimit.REJECT:
        return None
    # The frame of v1 is the larger one, but its line may have only the payload.
    whole_on_v1 = feed.versions is not FeedVersions.V2 and feed.v1_data is V1Data.EVENT
    return LONGEST_LINE - (V1_FRAME if whole_on_v1 else V2_FRAME)


def check_publisher(admission: Admission, by: Principal) -> None:
    """Raises Forbidden unless the caller has the right, for this topic, and the topic's exposure lists them."""
    by.require(Right.PUBLISH, admission.name)
    if not may_publish(admission.exposure, by.name):
        raise Forbidden(f"{by.name} may not publish to {admission.label}", expected="the topic's exposure must list you")


def events_of(admission: Admission, arrival: Arrival) -> list[Event]:
    """The events of a request: CloudEvents in any form, plain JSON, or lines of JSON. Raises Malformed and TooLarge."""
    unnamed = Unnamed(admission.source, admission.label, arrival.at, arrival.new_id)
    return published(arrival.headers, arrival.body, admission.limits, unnamed)


UNCHECKED = object()
"""Stands for a payload that the topic's schema does not apply to."""


def drafts_of(admission: Admission, events: Sequence[Event], at: Instant, payloads: Sequence[Any] | None = None) -> list[Draft]:
    """What is to be appended for these events. Raises InvalidEvent where the topic's schema does not hold.

    `payloads`: the payloads as far as they were parsed before, or UNCHECKED.
    """
    if admission.schema is not None:
        _check_schema(admission.schema, events, payloads)
    if admission.longest_event is not None:
        _check_lines(admission.longest_event, events if admission.avro is None else admission.avro.shown(events))
    return [
        Draft(
            admission.number, at, key_hash(partition_key(event.attributes, admission.key_attribute)), head_of(event), event.data
        )
        for event in events
    ]


def _check_lines(longest: int, events: Sequence[Event]) -> None:
    for index, event in enumerate(events):
        size = len(on_one_line(compact_event(head_of(event), event.data)))
        if size > longest:
            expected = f"at most {longest}, as the topic's feed.feedLineLimit says"
            raise TooLarge(f"an event of {size} bytes as JSON is too long for a feed", at=f"event {index}", expected=expected)


def _check_schema(schema: Schema, events: Sequence[Event], payloads: Sequence[Any] | None) -> None:
    faults: list[EventFault] = []
    for index, event in enumerate(events):
        if payloads is None:
            faults.extend(schema.faults(event.data, index))
        elif payloads[index] is not UNCHECKED:
            faults.extend(schema.faults_in(payloads[index], index))
    if faults:
        raise InvalidEvent(faults)
