"""The registry's tables from version to version, by Alembic, run by the writer when it opens. There is no alembic.ini.

A migration that was released is never edited; a new one goes into `versions/` and `store/schema.py` names it.
"""

from __future__ import annotations

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection


def upgrade(connection: Connection) -> None:
    """Bring the tables to the newest version, within the connection's transaction: a crash leaves the old ones."""
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def knows(version: str) -> bool:
    """Whether a version is one of ours."""
    return any(script.revision == version for script in ScriptDirectory.from_config(_config()).walk_revisions())


def head() -> str | None:
    """The newest version."""
    return ScriptDirectory.from_config(_config()).get_current_head()


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", "tidings.registry:migrations")
    config.set_main_option("path_separator", "os")
    return config
