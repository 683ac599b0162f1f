"""What documents refer to: it must be there once the change is made, and its exposure must list who asks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

from tidings.errors import Forbidden
from tidings.registry.model import Approval, Exposure, Name, Paper, Provider, Snapshot, Subscription, Topic, TopicsSource
from tidings.registry.port import Document
from tidings.registry.rules.approvals import listed, sourced
from tidings.registry.rules.credentials import unknown_provider_faults
from tidings.registry.rules.faults import Fault, refuse
from tidings.registry.rules.feeds import taken_aliases
from tidings.registry.rules.scopes import unknown_faults


def check_references(documents: Sequence[Document], changed: Iterable[Document], after: Snapshot) -> None:
    """Raise InvalidDocument where something referred to is missing after the change, Forbidden where a changed one may not."""
    refuse(documents, lambda document: [*_unknown(document, after), *unknown_provider_faults(document, after)])
    for document in changed:
        _check_listed(document, after)


def _unknown(document: Document, after: Snapshot) -> Iterator[Fault]:
    match document:
        case Topic():
            yield from taken_aliases(document, after)
        case Provider() | Paper():
            return
        case Subscription(source=TopicsSource(topics)):
            for n, topic in enumerate(topics):
                yield from _missing(f"source.topics[{n}]", topic, after)
                exposure = after.exposures.get(topic)
                if not document.blocked:
                    yield from unknown_faults(str(topic), exposure.scopes if exposure else {}, document.scopes)
        case Subscription():
            return
        case Exposure():
            yield from _missing("topic", document.topic, after)
        case Approval():
            yield from _missing("topic", document.topic, after)
            yield from _undecidable(document, after)
        case _:
            assert_never(document)


def _missing(path: str, topic: Name, after: Snapshot) -> Iterator[Fault]:
    if topic not in after.topics:
        yield path, f"there is no topic {topic}"


def _undecidable(approval: Approval, after: Snapshot) -> Iterator[Fault]:
    """Why nothing is to be approved."""
    subscription = after.subscriptions.get(approval.subscription)
    if subscription is None:
        yield "subscription", f"there is no subscription {approval.subscription}"
    elif not sourced(subscription, (approval.topic,)):
        yield "topic", f"the subscription {approval.subscription} does not ask for {approval.topic}"
    elif approval.topic not in after.exposures:
        yield "topic", f"the topic {approval.topic} has no exposure, so nothing is to be approved"


def _check_listed(document: Document, after: Snapshot) -> None:
    """A topic asked for by name refuses whoever is not on its list. A whole namespace simply leaves such topics out."""
    if not isinstance(document, Subscription) or document.blocked or not isinstance(document.source, TopicsSource):
        return
    for topic in document.source.topics:
        exposure = after.exposures.get(topic)
        if exposure is not None and not listed(document.owner, exposure.subscribers):
            raise Forbidden(f"{document.owner or 'an unnamed caller'} may not subscribe to {topic}", at=str(document.name))
