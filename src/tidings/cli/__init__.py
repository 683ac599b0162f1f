"""The command line: `tidings …`. Speaks only the HTTP API, but for backup, restore, doctor and the parts it starts itself.

Nothing heavy is imported before a command needs it, so that `tidings --help` is quick.
"""

from __future__ import annotations


def main() -> None:
    """The command `tidings`."""
    from tidings.cli.root import app

    app(prog_name="tidings")
