"""Cursors: marks as opaque text for clients. Today `0-1234`, one `partition-offset` per partition joined by dots."""

from __future__ import annotations

from tidings.errors import Malformed
from tidings.log.position import EMBEDDED, START, Marks, Offset, Partition, Position

_LARGEST = (1 << 63) - 1


def cursor_of(marks: Marks) -> str:
    """The marks as text. The beginning of an empty log is `0-0`."""
    return ".".join(f"{partition}-{offset}" for partition, offset in sorted(marks.items())) or "0-0"


def cursor_at(position: Position) -> str:
    """The cursor that goes on after this position."""
    return f"{position.partition}-{position.offset}"


def marks_of(cursor: str) -> Marks:
    """The marks that a cursor stands for. Raises Malformed."""
    marks: dict[Partition, Offset] = {}
    for part in cursor.split("."):
        partition, _, offset = part.partition("-")
        if not _is_number(partition) or not _is_number(offset):
            raise Malformed(
                "this is no cursor",
                found=cursor,
                expected="a cursor as this API gave it, _first, _last, or a time where one may stand",
            )
        marks[Partition(int(partition))] = Offset(int(offset))
    return marks


def position_of(cursor: str) -> Position:
    """The one position that a cursor of an event stands for. Raises Malformed."""
    marks = marks_of(cursor)
    if len(marks) != 1:
        raise Malformed("this cursor names no single event", found=cursor)
    return Position(*next(iter(marks.items())))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 19 and int(text) <= _LARGEST


def feed_place(marks: Marks) -> Offset:
    """Where marks stand for a feed. Its cursors are one number, the offset in the partition that it is read from: the
    embedded log has no other."""
    return marks.get(EMBEDDED, START)


def feed_position(place: int) -> Position:
    """The position that a feed's cursor stands for."""
    return Position(EMBEDDED, Offset(place))
