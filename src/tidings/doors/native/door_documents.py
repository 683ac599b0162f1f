"""What follows from another door's documents is shown by the native API, and changed only by those documents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tidings.doors.door import Door, owner_of
from tidings.errors import Conflict, EventFault, InvalidDocument
from tidings.registry.model import Exposure, Name, NamespaceSource, Subscription, Topic, TopicsSource
from tidings.registry.port import Document, DocumentEnd

DAY = 86400


def refuse_derived(doors: Sequence[Door], documents: Iterable[Document], endings: Iterable[DocumentEnd] = ()) -> None:
    """Raise Conflict for what a door's documents decide, InvalidDocument for keeping its events longer than they may be."""
    for document in documents:
        match document:
            case Topic(name=name) | Exposure(topic=name):
                refuse_name(doors, name)
            case Subscription():
                refuse_name(doors, document.name)
                _refuse_keeping(doors, document)
    for ending in endings:
        if isinstance(ending.name, Name):
            refuse_name(doors, ending.name)


def is_derived(doors: Sequence[Door], name: Name) -> bool:
    """Whether a door's own documents decide about this name."""
    return owner_of(doors, name) is not None


def refuse_name(doors: Sequence[Door], name: Name) -> None:
    """Raise Conflict where a door's own documents decide about a name."""
    door = owner_of(doors, name)
    if door is not None:
        raise Conflict(f"{name} follows from {door.title} documents", expected=door.changed_by)


def _refuse_keeping(doors: Sequence[Door], subscription: Subscription) -> None:
    for door in _owners(doors, subscription):
        longest = door.longest_retention
        if longest is not None and (subscription.retention or 0) > longest:
            told = f"events of {door.title} types are kept for {longest / DAY:g} days at the most"
            raise InvalidDocument([EventFault(0, "retention", "invalid", told)])


def _owners(doors: Sequence[Door], subscription: Subscription) -> Iterable[Door]:
    match subscription.source:
        case TopicsSource(topics):
            namespaces = {topic.namespace for topic in topics}
        case NamespaceSource(namespace):
            namespaces = {namespace}
    return [door for door in doors if any(map(door.owns, namespaces))]
