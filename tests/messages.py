"""What must never stand in a message to a person: words of the machine room."""

from __future__ import annotations

import re

MACHINE_ROOM = re.compile(
    r"Input should|Field required|Extra inputs|Unable to parse|Value error|Assertion failed"  # FastAPI's
    r"|Expected `|got `|Invalid enum value|JSON is malformed|Input data was|out of range"  # msgspec's
    r"|\bNone\b|\bTrue\b|\bFalse\b|NoneType|Decimal\(|found b'|<class|<[A-Z]\w+\.|object at 0x|\bdict\b|dictionary"  # Python's
    r"|set_int_max_str_digits|Traceback|Error\(|Errno|Exceeds the limit|\d(?:\.\d+)?e\+\d"
    r"|pydantic|msgspec|libyaml|jsonschema_rs|function-(?:before|after|wrap)"
)


def machine_words(message: str) -> str | None:
    """The first of them that stands in a message."""
    found = MACHINE_ROOM.search(message)
    return None if found is None else found[0]
