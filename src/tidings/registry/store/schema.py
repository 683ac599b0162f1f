"""The tables. `registry/migrations` makes them; a test compares the two."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, MetaData, PrimaryKeyConstraint, String, Table, Text, text

VERSION = "0001"
"""The newest migration: what the tables below look like."""

METADATA = MetaData()

REVISIONS = Table(
    "revisions",
    METADATA,
    Column("revision", Integer, primary_key=True, autoincrement=False),
    Column("at", BigInteger, nullable=False),
    Column("by", Text, nullable=False),
    Column("marks", Text, nullable=False),
)
"""One row a change, never removed. Revisions have no gaps, and their marks never go back in any partition."""

VERSIONS = Table(
    "versions",
    METADATA,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("kind", String(20), nullable=False),
    Column("namespace", String(200), nullable=False),
    Column("name", String(200), nullable=False),
    # The topic that an approval is about, as namespace:name; empty for every other kind.
    Column("topic", String(401), nullable=False),
    Column("number", Integer),
    Column("document", Text, nullable=False),
    Column("since_revision", Integer, nullable=False),
    Column("until_revision", Integer),
)
"""One row a version of a document: in force from `since_revision` on, and no more from `until_revision` on."""

_IN_FORCE = text("until_revision IS NULL")
Index(
    "versions_in_force",
    *(VERSIONS.c.kind, VERSIONS.c.namespace, VERSIONS.c.name, VERSIONS.c.topic),
    unique=True,
    sqlite_where=_IN_FORCE,
    postgresql_where=_IN_FORCE,
)
Index("versions_until", VERSIONS.c.until_revision)

CHANGES = Table(
    "changes",
    METADATA,
    Column("revision", Integer, nullable=False),
    Column("line", Integer, nullable=False),
    Column("action", String(20), nullable=False),
    Column("kind", String(20), nullable=False),
    Column("name", Text, nullable=False),
    Column("document", Text),
    PrimaryKeyConstraint("revision", "line"),
)
"""The audit log. Apart from the versions, because those are forgotten with the events they governed and it is not."""

NUMBERS = Table(
    "numbers",
    METADATA,
    Column("kind", String(20), primary_key=True),
    Column("last", Integer, nullable=False),
)
"""The last number given to a topic and to a lane. Kept apart, so that a deleted one's number is never given again."""

HUB = Table("hub", METADATA, Column("id", String(64), nullable=False))
"""One row: the id of the hub that the tables were made for; empty where the folder has none."""
