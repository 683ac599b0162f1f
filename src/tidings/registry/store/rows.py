"""Between rows and values: documents and marks as the tables hold them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from sqlalchemy import Connection, func, or_, select

from tidings.log.position import START, LaneNumber, Marks, Offset, Partition
from tidings.registry.model import FormerRetention, Snapshot, Subscription, Topic
from tidings.registry.port import Document
from tidings.registry.rules import DocumentKey, Version, key_of
from tidings.registry.rules.keys import KINDS, WORDS
from tidings.registry.rules.retention import Former, former_of
from tidings.registry.store.schema import REVISIONS, VERSIONS

_DECODERS: Mapping[str, msgspec.json.Decoder[Any]] = {word: msgspec.json.Decoder(kind) for word, kind in KINDS.items()}
_MARKS = msgspec.json.Decoder(dict[Partition, Offset])


def text_of(value: object) -> str:
    """A document or marks as the tables hold them."""
    return msgspec.json.encode(value).decode()


def document_of(kind: str, text: str) -> Document:
    """The document that a row holds."""
    document: Document = _DECODERS[kind].decode(text)
    return document


def marks_in(text: str) -> Marks:
    """The marks that a row holds."""
    return _MARKS.decode(text)


def key_columns(key: DocumentKey) -> dict[str, str]:
    """The columns that say which document a row is about."""
    topic = f"{key.topic.namespace}:{key.topic.name}" if key.topic else ""
    return {"kind": key.kind, "namespace": key.name.namespace, "name": key.name.name, "topic": topic}


def version_row(document: Document, revision: int) -> dict[str, Any]:
    """The row of a new version."""
    number = document.number if isinstance(document, Topic) else document.lane if isinstance(document, Subscription) else None
    return {
        **key_columns(key_of(document)),
        "number": number,
        "document": text_of(document),
        "since_revision": revision,
        "until_revision": None,
    }


def newest(connection: Connection) -> int:
    """The newest revision; 0 when nothing was ever changed."""
    return connection.execute(select(func.max(REVISIONS.c.revision))).scalar() or 0


def marks_of(connection: Connection, revision: int) -> Marks:
    """From where a revision holds."""
    found = connection.execute(select(REVISIONS.c.marks).where(REVISIONS.c.revision == revision)).scalar()
    return {} if found is None else marks_in(found)


def marks_from(connection: Connection, revision: int) -> dict[int, Marks]:
    """From where this revision and all later ones hold. Revision 0 is before everything."""
    rows = connection.execute(select(REVISIONS.c.revision, REVISIONS.c.marks).where(REVISIONS.c.revision >= revision))
    return {0: {}, **{row.revision: marks_in(row.marks) for row in rows}}


def settled_by(connection: Connection, marks: Marks) -> int:
    """The newest revision whose marks are all at or below these: positions above them know none of its predecessors.

    Marks never go back, so halving finds it without reading them all.
    """
    low, high = 0, newest(connection)
    while low < high:
        middle = (low + high + 1) // 2
        if all(offset <= marks.get(p, START) for p, offset in marks_of(connection, middle).items()):
            low = middle
        else:
            high = middle - 1
    return low


def versions_after(connection: Connection, revision: int) -> list[Version]:
    """Every version in force at this revision or later."""
    v = VERSIONS.c
    rows = connection.execute(
        select(v.kind, v.document, v.since_revision, v.until_revision).where(
            or_(v.until_revision.is_(None), v.until_revision > revision)
        )
    )
    return [Version(document_of(kind, text), since, until) for kind, text, since, until in rows]


def versions_changed(connection: Connection, revision: int) -> list[Version]:
    """Every version that began or ended after this revision."""
    v = VERSIONS.c
    rows = connection.execute(
        select(v.kind, v.document, v.since_revision, v.until_revision)
        .where(or_(v.since_revision > revision, v.until_revision > revision))
        .order_by(v.since_revision)
    )
    return [Version(document_of(kind, text), since, until) for kind, text, since, until in rows]


def snapshot_of(connection: Connection) -> Snapshot:
    """Everything in force now."""
    revision = newest(connection)
    rows = connection.execute(select(VERSIONS.c.kind, VERSIONS.c.document).where(VERSIONS.c.until_revision.is_(None)))
    tables: dict[str, dict[Any, Any]] = {f"{kind}s": {} for kind in KINDS}
    for kind, text in rows:
        document = document_of(kind, text)
        tables[f"{kind}s"][key_of(document).place] = document
    return Snapshot(revision=revision, **tables, former=_former(connection, tables["subscriptions"].values()))


class _Retained(msgspec.Struct, gc=False):
    """Picks what matters here out of a subscription's document."""

    lane: LaneNumber
    retention: float | None = None


_retained = msgspec.json.Decoder(_Retained).decode


def _former(connection: Connection, standing: Iterable[Subscription]) -> Former:
    """The retentions that subscriptions in force had for earlier events."""
    now = {subscription.lane: subscription.retention for subscription in standing}
    v = VERSIONS.c
    superseded = select(v.document, v.until_revision).where(v.kind == WORDS[Subscription], v.until_revision.is_not(None))
    steps = [(_retained(text), until) for text, until in connection.execute(superseded.order_by(v.until_revision))]
    changed = {one.lane for one, _ in steps if one.lane in now and one.retention != now[one.lane]}
    if not changed:
        return {}
    marks = marks_from(connection, steps[0][1])
    lanes: dict[LaneNumber, list[FormerRetention]] = {lane: [] for lane in changed}
    for one, until in steps:
        if one.lane in changed:
            lanes[one.lane].append(FormerRetention(marks[until], one.retention))
    return {lane: former_of(known, now[lane]) for lane, known in lanes.items()}
