"""What documents come to: read all of them, judge where they lead together, tell everything that is wrong (HOR-13, HOR-163).

Pure: the outcome is a `ApplyPlan`. The order of documents does not matter, since only their sum is judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from tidings.doors.horizon.documents.core_documents import derived
from tidings.doors.horizon.documents.environment import Environment, Wish, read
from tidings.doors.horizon.documents.findings import DocumentPart, Findings
from tidings.doors.horizon.documents.rovers import LISTS, RequestedExposure, Rover
from tidings.doors.horizon.documents.settings import DocumentSettings
from tidings.doors.horizon.documents.subscriptions import RequestedSubscription
from tidings.doors.horizon.names import KINDS, ROVER, Team, paper_name, subscription_id, subscription_name, topic_name
from tidings.errors import Conflict, EventFault, InvalidDocument
from tidings.registry.model import DEFAULT_SCOPE, Paper, Snapshot, Subscription, Topic, TopicsSource
from tidings.registry.port import Document, DocumentEnd
from tidings.registry.rules.changes import standing
from tidings.registry.rules.keys import canonical, key_of

API_VERSION = "tcp.ei.telekom.de/v1"
MEMBERS = ("apiVersion", "kind", "metadata", "spec")
_INCOMPLETE = "there is no EventSpecification of this type: its events cannot be published yet"


@dataclass(frozen=True, slots=True)
class Given:
    """One document as it came, and what it says. `key` is a Rover's client id, a specification's name."""

    raw: dict[str, Any]
    kind: str
    name: str
    key: str
    wish: Wish | None
    findings: Findings
    team: str = ""

    @property
    def label(self) -> str:
        return f"{self.kind}/{self.name}"

    def paper(self, environment: str) -> Paper:
        """The document as it is kept."""
        return Paper(name=paper_name(environment, self.kind, self.key), text=self.raw, owner=self.team)

    def at(self, path: str) -> DocumentPart:
        """A place of the document, to find something about."""
        return DocumentPart(None, path, self.findings)


@dataclass(frozen=True, slots=True)
class ApplyPlan:
    """What a change of documents comes to, in the documents and in the core."""

    before: Environment
    after: Environment
    puts: Sequence[Document]
    endings: Sequence[DocumentEnd]


def given(raw: Any, team: Team, ground: DocumentSettings) -> Given:
    """A document, read. What is wrong with it is in its findings."""
    place = DocumentPart(raw, "", Findings())
    if not place.is_object():
        return Given({}, "", "", "", None, place.findings)
    kind = place.member("kind").raw
    if kind not in KINDS:
        place.member("kind").unless_one_of(KINDS)
        return Given(raw, "", "", "", None, place.findings)
    place.only(MEMBERS)
    place.member("apiVersion").unless_one_of((API_VERSION,))
    wish = read(place, ground)
    written = place.member("metadata").member("name").raw
    name = written if isinstance(written, str) else ""
    key = team.client(name) if kind == ROVER else name
    return Given(raw, kind, name, key, None if place.findings.faults else wish, place.findings, str(team))


def planned(snapshot: Snapshot, before: Environment, documents: Sequence[Given], ground: DocumentSettings) -> ApplyPlan:
    """What these documents come to. Raises InvalidDocument or Conflict with everything that is wrong."""
    after, seen = before, set[tuple[str, str]]()
    for one in documents:
        if (one.kind, one.key) in seen:
            one.at("metadata.name").fault("this document is given twice")
        seen.add((one.kind, one.key))
        after = after.over(one.kind, one.key, one.wish) if one.wish is not None else after
    for one in documents:
        if isinstance(one.wish, Rover):
            _judge(one, one.wish, before, after)
    refuse(documents)
    types = {event_type for key in seen for world in (before, after) for event_type in world.types_of(*key)}
    papers = [one.paper(before.environment) for one in documents]
    puts = _changed(snapshot, [*papers, *derived(after, types, ground)])
    return ApplyPlan(before, after, puts, list(_endings(snapshot, before, after, types)))


def removed(snapshot: Snapshot, before: Environment, kind: str, key: str, ground: DocumentSettings) -> ApplyPlan:
    """What it comes to when one document ends."""
    after = before.over(kind, key, None)
    types = before.types_of(kind, key) | after.types_of(kind, key)
    paper = DocumentEnd(Paper, paper_name(before.environment, kind, key))
    puts = _changed(snapshot, derived(after, types, ground))
    return ApplyPlan(before, after, puts, [paper, *_endings(snapshot, before, after, types)])


def _changed(snapshot: Snapshot, puts: Sequence[Document]) -> list[Document]:
    """Those that do not stand already: a type may have thousands of subscriptions, and most of them stay as they are."""
    return [document for document in puts if not _stands(snapshot, document)]


def _stands(snapshot: Snapshot, document: Document) -> bool:
    key = key_of(document)
    found = standing(snapshot, key.kind, key.place)
    match document, found:
        case Topic(), Topic():
            document = msgspec.structs.replace(document, number=found.number)
        case Subscription(), Subscription():
            document = msgspec.structs.replace(document, lane=found.lane, created=found.created, fill=found.fill)
    return found is not None and canonical(found) == canonical(document)


def refuse(documents: Sequence[Given]) -> None:
    """Raise all that is wrong with any of them: InvalidDocument where there are faults, Conflict for conflicts alone."""
    faults = [
        EventFault(n, place.path, "invalid", place.reason) for n, one in enumerate(documents) for place in one.findings.faults
    ]
    conflicts = [
        EventFault(n, place.path, "conflict", place.reason)
        for n, one in enumerate(documents)
        for place in one.findings.conflicts
    ]
    if faults:
        raise InvalidDocument([*faults, *conflicts])
    if conflicts:
        error = Conflict(conflicts[0].detail, at=conflicts[0].attribute)
        error.faults = tuple(conflicts)
        raise error


def _judge(one: Given, wish: Rover, before: Environment, after: Environment) -> None:
    _judge_lists(one, before.rovers.get(one.key))
    for exposure in wish.exposures:
        _judge_exposure(one, exposure, after)
        _judge_default(one, exposure, before, after)
    for subscription in wish.subscriptions:
        _judge_scopes(one, subscription, before, after)


def _judge_lists(one: Given, former: Rover | None) -> None:
    """All entries of a list are only removed by an empty one: a list that is left out may be forgotten (HOR-169)."""
    exposed = [entry.event_type for entry in former.exposures] if former is not None else []
    subscribed = [entry.event_type for entry in former.subscriptions] if former is not None else []
    for name, stood in zip(LISTS, (exposed, subscribed), strict=True):
        if stood and one.raw["spec"].get(name) is None:
            types = ", ".join(stood[:3])
            one.at(f"spec.{name}").fault(f"is left out, but there were some ({types}): write [] to remove all of them")


def _judge_exposure(one: Given, wish: RequestedExposure, after: Environment) -> None:
    other = after.also_exposing(one.key, wish.event_type)
    if other is not None:
        place = one.at(f"{wish.path}.eventType")
        place.conflict(f"{wish.event_type} is exposed by {other}; only one application exposes a type")
    if after.specifying(wish.event_type) is None:
        one.at(wish.path).warn(_INCOMPLETE)


def _judge_default(one: Given, wish: RequestedExposure, before: Environment, after: Environment) -> None:
    """Without the scope `default`, whoever names no scope gets everything: that may not be meant (HOR-102)."""
    former = before.exposure(one.key, wish.event_type)
    if former is None or DEFAULT_SCOPE not in former.scopes or DEFAULT_SCOPE in wish.scopes:
        return
    widened = [client for client, _, subscription in after.subscribing(wish.event_type) if not subscription.scopes]
    if widened:
        names = ", ".join(widened[:3]) + (f" and {len(widened) - 3} more" if len(widened) > 3 else "")
        one.at(f"{wish.path}.scopes").warn(f"no longer has {DEFAULT_SCOPE}: {names} named no scope and will get everything")


def _judge_scopes(one: Given, wish: RequestedSubscription, before: Environment, after: Environment) -> None:
    """Scopes may only be removed (HOR-41), and those named anew must be there (HOR-106)."""
    former = before.subscription(one.key, wish.event_type)
    if former is not None and former.scopes == wish.scopes:
        return
    exposing = after.exposing(wish.event_type)
    for number, scope in enumerate(wish.scopes):
        place = one.at(f"{wish.path}.scopes[{number}]")
        if exposing is not None and scope not in exposing[2].scopes:
            known = ", ".join(exposing[2].scopes) or "none"
            place.fault(f"{wish.event_type} has no scope {scope!r}; it has {known}")
        elif former is not None and scope not in former.scopes:
            place.conflict("a scope cannot be added to a subscription: delete it and make a new one, which is approved anew")


def _endings(snapshot: Snapshot, before: Environment, after: Environment, types: set[str]) -> Iterator[DocumentEnd]:
    """The subscriptions that nobody wants any more, and the topics that nobody speaks of any more."""
    gone = {
        subscription_name(before.environment, subscription_id(before.environment, event_type, client))
        for event_type in types
        for client, _, _ in before.subscribing(event_type)
        if after.subscription(client, event_type) is None
    }
    yield from (DocumentEnd(Subscription, name) for name in sorted(gone) if name in snapshot.subscriptions)
    topics = {topic_name(before.environment, event_type) for event_type in types if not after.names(event_type)}
    if topics:
        rest = (one.source for name, one in snapshot.subscriptions.items() if name not in gone)
        asked = {topic for source in rest if isinstance(source, TopicsSource) for topic in source.topics}
        yield from (DocumentEnd(Topic, name) for name in sorted(topics) if name in snapshot.topics and name not in asked)
