"""A layout names the format that it belongs to, with its settings below. Before, each door had one, for its own namespaces."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_VERSIONS = sa.table("versions", sa.column("id"), sa.column("kind"), sa.column("document"))


def upgrade() -> None:
    connection = op.get_bind()
    found = sa.select(_VERSIONS.c.id, _VERSIONS.c.document).where(
        _VERSIONS.c.kind == "subscription", _VERSIONS.c.document.like('%"layout":{%')
    )
    for number, text in connection.execute(found).all():
        document = json.loads(text)
        delivery = document.get("delivery") or {}
        layout = delivery.get("layout")
        if not isinstance(layout, dict) or "format" in layout:
            continue
        door = document["name"]["namespace"].partition("/")[0]
        delivery["layout"] = {"format": door, "settings": layout}
        written = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
        connection.execute(sa.update(_VERSIONS).where(_VERSIONS.c.id == number).values(document=written))
