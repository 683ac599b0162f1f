"""The first tables: revisions, versions of documents, the audit log, the last numbers given."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "revisions",
        sa.Column("revision", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("by", sa.Text, nullable=False),
        sa.Column("marks", sa.Text, nullable=False),
    )
    op.create_table(
        "versions",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("namespace", sa.String(200), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("topic", sa.String(401), nullable=False),
        sa.Column("number", sa.Integer),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("since_revision", sa.Integer, nullable=False),
        sa.Column("until_revision", sa.Integer),
    )
    in_force = sa.text("until_revision IS NULL")
    op.create_index(
        "versions_in_force",
        "versions",
        ["kind", "namespace", "name", "topic"],
        unique=True,
        sqlite_where=in_force,
        postgresql_where=in_force,
    )
    op.create_index("versions_until", "versions", ["until_revision"])
    op.create_table(
        "changes",
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("line", sa.Integer, nullable=False),
        sa.Column("action", sa.String(20), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("document", sa.Text),
        sa.PrimaryKeyConstraint("revision", "line"),
    )
    op.create_table(
        "numbers",
        sa.Column("kind", sa.String(20), primary_key=True),
        sa.Column("last", sa.Integer, nullable=False),
    )
    op.create_table("hub", sa.Column("id", sa.String(64), nullable=False))
