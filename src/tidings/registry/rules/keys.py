"""What makes two documents the same document, and the same version of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, assert_never

import msgspec

from tidings.registry.model import Approval, Exposure, Name, Paper, Provider, Subscription, Topic
from tidings.registry.port import Document

KINDS: Mapping[str, type[Document]] = {
    "topic": Topic,
    "exposure": Exposure,
    "subscription": Subscription,
    "approval": Approval,
    "provider": Provider,
    "paper": Paper,
}
"""The kinds of document by the word under which they are kept."""

WORDS: Mapping[type[Document], str] = {kind: word for word, kind in KINDS.items()}

Place: TypeAlias = Name | tuple[Name, Name]
"""Where a document stands in the snapshot's table of its kind."""


class DocumentKey(msgspec.Struct, frozen=True, gc=False):
    """Which document. `topic` is set for approvals only, whose `name` is the subscription's."""

    kind: str
    name: Name
    topic: Name | None = None

    @property
    def place(self) -> Place:
        return self.name if self.topic is None else (self.name, self.topic)

    def __str__(self) -> str:
        return str(self.name) if self.topic is None else f"{self.name} on {self.topic}"


class Version(msgspec.Struct, frozen=True, gc=False):
    """A document from the revision `since` on, and no more from the revision `until` on (None: still in force)."""

    document: Document
    since: int
    until: int | None = None


def key_of(document: Document) -> DocumentKey:
    """The key of a document."""
    match document:
        case Topic() | Subscription() | Provider() | Paper():
            return DocumentKey(WORDS[type(document)], document.name)
        case Exposure():
            return DocumentKey("exposure", document.topic)
        case Approval():
            return DocumentKey("approval", document.subscription, document.topic)
        case _:
            assert_never(document)


def canonical(value: object) -> bytes:
    """Equal bytes for equal meaning. Python's `==` will not do: it holds True and 1, or 1 and 1.0, to be equal."""
    return msgspec.json.encode(value, order="deterministic")
