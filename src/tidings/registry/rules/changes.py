"""What a change of the registry comes to: numbers given, references checked, approvals and leftovers settled.

A plan is a value. The store writes it as one revision, all or nothing; `applied` says what is in force afterwards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, assert_never

import msgspec

from tidings.clock import Instant
from tidings.errors import Conflict, Forbidden, NotFound
from tidings.log.position import LaneNumber, Marks, TopicNumber
from tidings.registry.model import Approval, Exposure, Name, Snapshot, Subscription, Topic, TopicsSource
from tidings.registry.port import Document
from tidings.registry.rules.approvals import approvals_after, listed, sourced
from tidings.registry.rules.keys import WORDS, Key, Place, canonical, key_of
from tidings.registry.rules.values import Fault, refuse

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


class Plan(msgspec.Struct, frozen=True):
    """What a change comes to. Nothing to put and nothing to end: everything stands already."""

    puts: tuple[Document, ...] = ()
    ends: tuple[Key, ...] = ()
    numbers: Numbers = Numbers()


def plan_put(world: World, documents: Sequence[Document], at: Instant) -> Plan:
    """Put these documents into force. Raises InvalidDocument or Forbidden."""
    seen = Counter(key_of(document) for document in documents)
    refuse(documents, lambda document: _repeated(key_of(document), seen))
    numbered, numbers = _numbered(world, documents, at)
    changed = tuple(document for document in numbered if not _stands(world.snapshot, document))
    after = applied(world.snapshot, Plan(changed), world.snapshot.revision)
    refuse(documents, lambda document: _unknown(document, after))
    for document in changed:
        _check_listed(document, after)
    return _with_approvals(world.snapshot, Plan(changed, (), numbers))


def plan_delete(world: World, kind: type[Document], name: Name, *, force: bool) -> Plan:
    """End a document and what cannot stand without it. Raises NotFound or Conflict."""
    if kind is Approval:
        raise Conflict("an approval ends with its subscription; reject it instead", found=str(name))
    key = Key(WORDS[kind], name)
    if key.place not in _tables(world.snapshot)[key.kind]:
        raise NotFound(f"there is no {key.kind} {name}")
    direct = _topic_leaves(world.snapshot, name, force=force) if kind is Topic else Plan(ends=(key,))
    return _with_approvals(world.snapshot, msgspec.structs.replace(direct, numbers=world.numbers))


def applied(before: Snapshot, plan: Plan, revision: int) -> Snapshot:
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
    }


def standing(snapshot: Snapshot, kind: str, place: Place) -> Document | None:
    """The document in force at this place."""
    return _tables(snapshot)[kind].get(place)


def _stands(snapshot: Snapshot, document: Document) -> bool:
    key = key_of(document)
    found = standing(snapshot, key.kind, key.place)
    return found is not None and canonical(found) == canonical(document)


def _with_approvals(before: Snapshot, plan: Plan) -> Plan:
    """The plan, and the approvals that it brings or ends."""
    after = applied(before, plan, before.revision)
    approvals = approvals_after(before, after, [*map(key_of, plan.puts), *plan.ends])
    puts = {key_of(document): document for document in (*plan.puts, *approvals.puts)}
    return Plan(
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
                numbered.append(msgspec.structs.replace(document, number=number))
            case Subscription():
                same = world.snapshot.subscriptions.get(document.name)
                if same is None:
                    numbers = msgspec.structs.replace(numbers, lane=numbers.lane + 1)
                lane, created = (same.lane, same.created) if same else (LaneNumber(numbers.lane), at)
                numbered.append(msgspec.structs.replace(document, lane=lane, created=created))
            case _:
                numbered.append(document)
    return numbered, numbers


def _repeated(key: Key, seen: Counter[Key]) -> Iterator[Fault]:
    if seen[key] > 1:
        yield "name", f"the {key.kind} {key} is given {seen[key]} times"


def _unknown(document: Document, after: Snapshot) -> Iterator[Fault]:
    """What the document refers to and is not there."""
    match document:
        case Topic():
            return
        case Subscription(source=TopicsSource(topics)):
            for n, topic in enumerate(topics):
                yield from _missing(f"source.topics[{n}]", topic, after)
        case Subscription():
            return
        case Exposure():
            yield from _missing("topic", document.topic, after)
        case Approval():
            yield from _missing("topic", document.topic, after)
            subscription = after.subscriptions.get(document.subscription)
            if subscription is None:
                yield "subscription", f"there is no subscription {document.subscription}"
            elif not sourced(subscription, (document.topic,)):
                yield "topic", f"the subscription {document.subscription} does not ask for {document.topic}"
            elif document.topic not in after.exposures:
                yield "topic", f"the topic {document.topic} has no exposure, so nothing is to be approved"
        case _:
            assert_never(document)


def _missing(path: str, topic: Name, after: Snapshot) -> Iterator[Fault]:
    if topic not in after.topics:
        yield path, f"there is no topic {topic}"


def _check_listed(document: Document, after: Snapshot) -> None:
    """A topic asked for by name refuses whoever is not on its list. A whole namespace simply leaves such topics out."""
    if not isinstance(document, Subscription) or not isinstance(document.source, TopicsSource):
        return
    for topic in document.source.topics:
        exposure = after.exposures.get(topic)
        if exposure is not None and not listed(document.owner, exposure.subscribers):
            raise Forbidden(f"{document.owner or 'an unnamed caller'} may not subscribe to {topic}", at=str(document.name))


def _topic_leaves(before: Snapshot, name: Name, *, force: bool) -> Plan:
    """A topic that is asked for by name goes only when forced; its subscriptions then keep their other topics, or go too."""
    asking = [s for s in before.subscriptions.values() if isinstance(s.source, TopicsSource) and name in s.source.topics]
    if asking and not force:
        names = ", ".join(sorted(str(s.name) for s in asking)[:NAMED])
        more = f" and {len(asking) - NAMED} more" if len(asking) > NAMED else ""
        raise Conflict(f"the topic {name} has subscriptions: {names}{more}", expected="delete them first, or force it")
    ends = [Key("topic", name)]
    if name in before.exposures:
        ends.append(Key("exposure", name))
    puts: list[Document] = []
    for subscription in asking:
        left = tuple(topic for topic in sourced(subscription, before.topics) if topic != name)
        if left:
            puts.append(msgspec.structs.replace(subscription, source=TopicsSource(left)))
        else:
            ends.append(Key("subscription", subscription.name))
    return Plan(tuple(puts), tuple(ends))
