"""Long arguments of commands: given inline, as the name of a file, or on stdin."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

from tidings.errors import Malformed

GIVEN = "inline, the name of a file, or - for stdin"

_LONGEST_NUMBER = 4000
_LIKE_A_FILE = re.compile(r"[^\s{}\[\]()\"'=<>]+\.(json|ya?ml|txt|sql)")


def given(text: str, what: str) -> str:
    """The text itself, the contents of the file of that name, or stdin. Raises Malformed when it cannot be read."""
    found = sys.stdin.buffer.read() if text == "-" else _held(text, what)
    try:
        return found.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Malformed(f"{what} is not in UTF-8", at=f"byte {error.start}", found=found[error.start : error.end]) from error


def _held(text: str, what: str) -> bytes:
    try:
        if _is_file(text):
            return Path(text).read_bytes()
    except OSError as error:
        raise Malformed(f"{what} cannot be read: {error.strerror}", found=text) from error
    if _LIKE_A_FILE.fullmatch(text):
        raise Malformed(f"{what} cannot be read: there is no such file", found=text)
    return os.fsencode(text)


def _is_file(text: str) -> bool:
    """Whether a file has this name. A text too long for a file name is not one."""
    try:
        return Path(text).is_file()
    except OSError:
        return False


def json_in(text: str, what: str, at: str = "") -> Any:
    """The JSON value of a text. Raises Malformed with the place; `at`: where the text came from."""
    try:
        return json.loads(text, parse_int=_integer, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        reason = f"{error.msg[:1].lower()}{error.msg[1:]}"
        raise Malformed(f"{what} is not JSON: {reason}", at=", ".join(filter(None, (at, place))), found=text.strip()) from error
    except ValueError as error:
        raise Malformed(f"{what} is not JSON: {error}", at=at) from error
    except RecursionError as error:
        raise Malformed(f"{what} nests too deeply", at=at, expected="at most 128 levels") from error


def _integer(digits: str) -> int:
    if len(digits) > _LONGEST_NUMBER:
        raise ValueError(f"a number has {len(digits)} digits, at most {_LONGEST_NUMBER} can be read")
    return int(digits)


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is not a number of JSON")
