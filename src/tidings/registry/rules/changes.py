"""What a change of the registry comes to: numbers given, approvals and leftovers settled.

A plan is a value. The store writes it as one revision, all or nothing; `applied` says what is in force afterwards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from tidings.clock import Instant
from tidings.errors import Conflict, NotFound
from tidings.log.position import LaneNumber, Marks, TopicNumber
from tidings.registry.model import Approval, LaneFill, Name, Snapshot, Subscription, Topic, TopicsSource
from tidings.registry.port import Document, DocumentEnd
from tidings.registry.rules.approvals import approvals_after, sourced
from tidings.registry.rules.avro import settled_avro
from tidings.registry.rules.credentials import provider_named_by
from tidings.registry.rules.faults import Fault, refuse
from tidings.registry.rules.feeds import settled_feed
from tidings.registry.rules.keys import WORDS, DocumentKey, Place, canonical, key_of
from tidings.registry.rules.references import check_references

NAMED = 5
"""How many subscriptions a refusal names."""


class Numbers(msgspec.Struct, frozen=True):
    """The last numbers given. They only rise, so that no number is ever given twice."""

    topic: int = 0
    lane: int = 0


class World(msgspec.Struct, frozen=True):
    """What a change starts from: what is in force, the last numbers given, the marks of the newest revision."""

    snapshot: Snapshot
    numbers: Numbers = Numbers()
    marks: Marks = {}


class ChangePlan(msgspec.Struct, frozen=True):
    """What a change comes to. Nothing to put and nothing to end: everything stands already."""

    puts: tuple[Document, ...] = ()
    ends: tuple[DocumentKey, ...] = ()
    numbers: Numbers = Numbers()


def plan_change(world: World, puts: Sequence[Document], endings: Sequence[DocumentEnd], at: Instant) -> ChangePlan:
    """Put these documents into force and end those, judged by what both lead to together.

    Raises InvalidDocument, Forbidden, NotFound or Conflict.
    """
    before = world.snapshot
    ended = {_ending_key(before, ending): ending.force for ending in endings}
    seen = Counter(map(key_of, puts))
    refuse(puts, lambda document: _contradictions(key_of(document), seen, ended))
    numbered, numbers = _numbered(world, puts, at)
    changed = tuple(document for document in numbered if not _stands(before, document))
    direct = ChangePlan(changed, (*ended, *_exposures_left(before, ended)), numbers)
    after = applied(before, direct, before.revision)
    _refuse_needed_providers(after, ended)
    check_references(puts, changed, after)
    return _with_approvals(before, _with_askers(direct, after, ended))


def applied(before: Snapshot, plan: ChangePlan, revision: int) -> Snapshot:
    """What is in force after the plan, as of the revision it became."""
    tables: dict[str, dict[Any, Any]] = {}
    for key in plan.ends:
        _copied(before, tables, key.kind).pop(key.place)
    for document in plan.puts:
        key = key_of(document)
        _copied(before, tables, key.kind)[key.place] = document
    return msgspec.structs.replace(before, revision=revision, **{f"{kind}s": table for kind, table in tables.items()})


def _copied(before: Snapshot, tables: dict[str, dict[Any, Any]], kind: str) -> dict[Any, Any]:
    """The table of a kind as it will be; only tables that change are copied."""
    if kind not in tables:
        tables[kind] = dict(_tables(before)[kind])
    return tables[kind]


def _tables(snapshot: Snapshot) -> Mapping[str, Mapping[Any, Document]]:
    return {
        "topic": snapshot.topics,
        "exposure": snapshot.exposures,
        "subscription": snapshot.subscriptions,
        "approval": snapshot.approvals,
        "provider": snapshot.providers,
        "paper": snapshot.papers,
    }


def standing(snapshot: Snapshot, kind: str, place: Place) -> Document | None:
    """The document in force at this place."""
    return _tables(snapshot)[kind].get(place)


def _stands(snapshot: Snapshot, document: Document) -> bool:
    key = key_of(document)
    found = standing(snapshot, key.kind, key.place)
    return found is not None and canonical(found) == canonical(document)


def _with_approvals(before: Snapshot, plan: ChangePlan) -> ChangePlan:
    """The plan, and the approvals that it brings or ends."""
    after = applied(before, plan, before.revision)
    approvals = approvals_after(before, after, [*map(key_of, plan.puts), *plan.ends])
    puts = {key_of(document): document for document in (*plan.puts, *approvals.puts)}
    return ChangePlan(
        tuple(document for document in puts.values() if not _stands(before, document)),
        (*plan.ends, *approvals.ends),
        plan.numbers,
    )


def _numbered(world: World, documents: Iterable[Document], at: Instant) -> tuple[list[Document], Numbers]:
    """The documents with the numbers they have for ever; what is new gets the next ones."""
    numbers, numbered = world.numbers, list[Document]()
    for document in documents:
        match document:
            case Topic():
                topic = world.snapshot.topics.get(document.name)
                if topic is None:
                    numbers = msgspec.structs.replace(numbers, topic=numbers.topic + 1)
                number = topic.number if topic else TopicNumber(numbers.topic)
                feed, avro = settled_feed(document, topic), settled_avro(document, topic)
                numbered.append(msgspec.structs.replace(document, number=number, feed=feed, avro=avro))
            case Subscription():
                same = world.snapshot.subscriptions.get(document.name)
                if same is None:
                    numbers = msgspec.structs.replace(numbers, lane=numbers.lane + 1)
                lane, created = (same.lane, same.created) if same else (LaneNumber(numbers.lane), at)
                fill = _settled_fill(document.fill, same.fill if same else None)
                numbered.append(msgspec.structs.replace(document, lane=lane, created=created, fill=fill))
            case _:
                numbered.append(document)
    return numbered, numbers


def _settled_fill(wanted: LaneFill | None, before: LaneFill | None) -> LaneFill | None:
    """The filling that stands: a new one gets the next number, and what was there stays otherwise."""
    if wanted is None or wanted.number:
        return before
    return msgspec.structs.replace(wanted, number=1 + (before.number if before else 0))


def _contradictions(key: DocumentKey, seen: Counter[DocumentKey], ended: Collection[DocumentKey]) -> Iterator[Fault]:
    if seen[key] > 1:
        yield "name", f"the {key.kind} {key} is given {seen[key]} times"
    if key in ended:
        yield "name", f"the {key.kind} {key} is to be put and to be ended at once"


def _ending_key(before: Snapshot, ending: DocumentEnd) -> DocumentKey:
    if ending.kind is Approval:
        raise Conflict("an approval ends with its subscription; reject it instead", found=str(ending.name))
    key = DocumentKey(WORDS[ending.kind], ending.name)
    if standing(before, key.kind, key.place) is None:
        raise NotFound(f"there is no {key.kind} {ending.name}")
    return key


def _exposures_left(before: Snapshot, ended: Collection[DocumentKey]) -> Iterator[DocumentKey]:
    """The exposures that end with their topics and are not ended by name."""
    for key in ended:
        exposure = DocumentKey("exposure", key.name)
        if key.kind == "topic" and key.name in before.exposures and exposure not in ended:
            yield exposure


def _with_askers(plan: ChangePlan, after: Snapshot, ended: Mapping[DocumentKey, bool]) -> ChangePlan:
    """The plan, and what becomes of subscriptions that still ask for its topics by name.

    They keep such a topic from ending. Where that is forced, they keep their other topics, or end too.
    """
    forced = {key.name: force for key, force in ended.items() if key.kind == "topic"}
    askers = [s for s in after.subscriptions.values() if any(topic in forced for topic in _by_name(s))] if forced else []
    for topic, force in forced.items():
        if not force and (asking := [s for s in askers if topic in _by_name(s)]):
            raise _asked_for(topic, asking)
    rests = [(s, tuple(sourced(s, after.topics))) for s in askers]
    trimmed = [msgspec.structs.replace(s, source=TopicsSource(rest)) for s, rest in rests if rest]
    taken_along = [DocumentKey("subscription", s.name) for s, rest in rests if not rest]
    return ChangePlan((*plan.puts, *trimmed), (*plan.ends, *taken_along), plan.numbers)


def _refuse_needed_providers(after: Snapshot, ended: Collection[DocumentKey]) -> None:
    """A provider whose tokens a subscription shows cannot end before it: its deliveries would all fail."""
    names = {key.name for key in ended if key.kind == "provider"}
    if not names:
        return
    users = [(s, name) for s in after.subscriptions.values() if (name := provider_named_by(s)) in names]
    for provider in sorted(names):
        using = [s for s, name in users if name == provider]
        if using:
            raise Conflict(
                f"the provider {provider} is used by {_listed(using)}", expected="give them another credential first"
            )


def _by_name(subscription: Subscription) -> Sequence[Name]:
    return subscription.source.topics if isinstance(subscription.source, TopicsSource) else ()


def _asked_for(topic: Name, asking: Sequence[Subscription]) -> Conflict:
    return Conflict(f"the topic {topic} has subscriptions: {_listed(asking)}", expected="delete them first, or force it")


def _listed(subscriptions: Sequence[Subscription]) -> str:
    names = ", ".join(sorted(str(s.name) for s in subscriptions)[:NAMED])
    return names + (f" and {len(subscriptions) - NAMED} more" if len(subscriptions) > NAMED else "")
