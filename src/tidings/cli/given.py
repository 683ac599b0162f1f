"""What a person gives a command in place of a long text: the text itself, the name of a file that holds it, or stdin."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from tidings.errors import Malformed

GIVEN = "inline, the name of a file, or - for stdin"

_LIKE_A_FILE = re.compile(r"[^\s{}\[\]()\"'=<>]+\.(json|ya?ml|txt|sql)")


def given(text: str, what: str) -> str:
    """What stands there, what the file of that name holds, or what comes on stdin. Raises Malformed when it cannot be read."""
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
    """Whether a file has this name. What is too long for a name is none."""
    try:
        return Path(text).is_file()
    except OSError:
        return False
