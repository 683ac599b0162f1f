"""Takes the texts at places of a decoded Avro payload. Mostly they are texts already, deep in records.

Generated, because following fixed names is several times as fast as any loop over them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from tidings.filters.event_values import avro_made_of
from tidings.filters.paths import AvroTextPath, AvroTextsPath

AvroPath: TypeAlias = AvroTextPath | AvroTextsPath


def avro_text_of(path: AvroPath) -> Callable[[object], Any]:
    """What the path gives from one decoded payload, or from MISSING."""
    slow = avro_made_of(path)
    if not _is_plain(path):
        return slow
    fast = _generated([path])

    def text(root: object) -> Any:
        try:
            (found,) = fast(root)
        except (KeyError, TypeError):
            return slow(root)
        return found if found.__class__ is str else slow(root)

    return text


def avro_row_of(paths: Sequence[AvroPath]) -> Callable[[object], Sequence[Any]]:
    """What all paths give from one decoded payload."""
    texts = [avro_text_of(path) for path in paths]
    plain = [path for path in paths if _is_plain(path)]
    fast = _generated(plain) if len(plain) == len(paths) else None

    def row(root: object) -> Sequence[Any]:
        if fast is not None:
            try:
                found = fast(root)
            except (KeyError, TypeError):
                pass
            else:
                if set(map(type, found)) == {str}:
                    return found
        return [text(root) for text in texts]

    return row


def _is_plain(path: AvroPath) -> bool:
    """Whether the path has names only: an index would find characters in a text."""
    return all(isinstance(step, str) for step in path.steps)


def _generated(paths: Sequence[AvroPath]) -> Callable[[object], Sequence[Any]]:
    space: dict[str, Any] = {}
    taken = "".join("root" + "".join(f"[{step!r}]" for step in path.steps) + ", " for path in paths)
    exec(f"def fast(root): return ({taken})", space)
    fast: Callable[[object], Sequence[Any]] = space["fast"]
    return fast
