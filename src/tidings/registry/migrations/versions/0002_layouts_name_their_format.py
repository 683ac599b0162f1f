"""A layout names the format that it belongs to, with its settings below. There was one format before, that of Horizon."""

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
        delivery["layout"] = {"format": "horizon", "settings": layout}
        written = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
        connection.execute(sa.update(_VERSIONS).where(_VERSIONS.c.id == number).values(document=written))
