"""What would change: documents as they are wanted against what is in force. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from tidings.access.secrets import without_secrets
from tidings.registry.model import Exposure, Name, Snapshot, Subscription, Topic
from tidings.registry.port import Document, DocumentEnd
from tidings.registry.rules.avro import settled_avro
from tidings.registry.rules.feeds import settled_feed

Action = Literal["create", "update", "delete"]

_GIVEN_BY_THE_HUB = ("number", "lane", "created", "fill")


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that changes. `changes`: for each member that differs, what it is and what it will be."""

    action: Action
    kind: str
    name: str
    changes: dict[str, tuple[Any, Any]] | None = None


@dataclass(frozen=True, slots=True)
class DocumentChanges:
    """What is to be put and ended, the same as steps to show, and how much stands already."""

    puts: Sequence[Document]
    endings: Sequence[DocumentEnd]
    steps: Sequence[Step]
    unchanged: int


def document_changes(snapshot: Snapshot, wanted: Sequence[Document], endings: Sequence[DocumentEnd]) -> DocumentChanges:
    """What it takes to come from the snapshot to what is wanted."""
    puts: list[Document] = []
    steps: list[Step] = []
    for document in wanted:
        kind, name, standing = _place(snapshot, document)
        changes = None if standing is None else _changes(standing, document)
        if standing is not None and not changes:
            continue
        puts.append(document)
        steps.append(Step("create" if standing is None else "update", kind, str(name), changes))
    steps += [Step("delete", ending.kind.__name__.lower(), str(ending.name)) for ending in endings]
    return DocumentChanges(puts, endings, steps, len(wanted) - len(puts))


def _place(snapshot: Snapshot, document: Document) -> tuple[str, Name, Document | None]:
    match document:
        case Topic():
            return "topic", document.name, snapshot.topics.get(document.name)
        case Exposure():
            return "exposure", document.topic, snapshot.exposures.get(document.topic)
        case Subscription():
            return "subscription", document.name, snapshot.subscriptions.get(document.name)
        case _:
            raise TypeError(document)


def _changes(standing: Document, wanted: Document) -> dict[str, tuple[Any, Any]]:
    if isinstance(standing, Topic) and isinstance(wanted, Topic):
        feed, avro = settled_feed(wanted, standing), settled_avro(wanted, standing)
        wanted = msgspec.structs.replace(wanted, feed=feed, avro=avro)
    before, after = _members(standing), _members(wanted)
    # Compared as JSON text: to Python, True and 1 are equal.
    differing = [name for name in after if msgspec.json.encode(before[name]) != msgspec.json.encode(after[name])]
    return {name: (without_secrets(before[name]), without_secrets(after[name])) for name in differing}


def _members(document: Document) -> dict[str, Any]:
    members: dict[str, Any] = msgspec.to_builtins(document)
    return {name: value for name, value in members.items() if name not in _GIVEN_BY_THE_HUB}
