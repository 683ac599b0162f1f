"""What follows from Horizon's documents is shown by the native API, and changed only by those documents (HOR-12, HOR-159)."""

from __future__ import annotations

from collections.abc import Iterable

from tidings.errors import Conflict, EventFault, InvalidDocument
from tidings.facades.horizon.deriving import WEEK
from tidings.facades.horizon.standing import is_ours
from tidings.registry.model import Exposure, Name, NamespaceSource, Subscription, Topic, TopicsSource
from tidings.registry.port import Document, Ending

_EXPECTED = "apply the Rover or EventSpecification that asks for it"


def refuse_derived(documents: Iterable[Document], endings: Iterable[Ending] = ()) -> None:
    """Raise Conflict for what Horizon's documents decide, InvalidDocument for keeping its events longer than they may be."""
    for document in documents:
        match document:
            case Topic(name=name) | Exposure(topic=name):
                refuse_name(name)
            case Subscription():
                refuse_name(document.name)
                _refuse_keeping(document)
    for ending in endings:
        if isinstance(ending.name, Name):
            refuse_name(ending.name)


def refuse_name(name: Name) -> None:
    """Raise Conflict where a name is Horizon's."""
    if is_ours(name.namespace):
        raise Conflict(f"{name} follows from Horizon documents", expected=_EXPECTED)


def _refuse_keeping(subscription: Subscription) -> None:
    match subscription.source:
        case TopicsSource(topics):
            ours = any(is_ours(topic.namespace) for topic in topics)
        case NamespaceSource(namespace):
            ours = is_ours(namespace)
    if ours and (subscription.retention or 0) > WEEK:
        told = "events of Horizon types are kept for 7 days at the most"
        raise InvalidDocument([EventFault(0, "retention", "invalid", told)])
