"""Which members of a document a command changes: those given, and those reset to their default."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tidings.errors import Rejected

Reset = Annotated[
    list[str] | None,
    typer.Option(
        "--reset",
        metavar="MEMBER",
        help="Set a member back to its default, by its name in `show`: retention, feed.aliases, delivery.headers, …",
    ),
]


def given(members: dict[str, Any]) -> dict[str, Any]:
    """Without what was not given."""
    return {name: value for name, value in members.items() if value is not None}


def changed(members: dict[str, Any], reset: list[str] | None) -> dict[str, Any]:
    """What to change: everything given, and null for what is reset. Raises Rejected when a member is both."""
    wanted = given(members)
    for name in reset or ():
        *outer, last = name.split(".")
        inner = wanted
        for word in outer:
            inner = inner.setdefault(word, {})
            if not isinstance(inner, dict):
                raise Rejected("it is given and reset at the same time", at="--reset", found=name)
        if last in inner:
            raise Rejected("it is given and reset at the same time", at="--reset", found=name)
        inner[last] = None
    return wanted
