"""Content types: which HTTP form of an event they announce, and what they say about a payload."""

from __future__ import annotations

import re
from enum import Enum

from tidings.errors import UnsupportedFormat

JSON = "application/json"
STRUCTURED = "application/cloudevents+json; charset=utf-8"
BATCH = "application/cloudevents-batch+json; charset=utf-8"


class HttpForm(Enum):
    """How a request carries events (CEH-01)."""

    BINARY = "binary"
    STRUCTURED = "structured"
    BATCH = "batch"


_PREFIX = "application/cloudevents"
_BATCH_PREFIX = "application/cloudevents-batch"
_CHARSET = re.compile(r';\s*charset\s*=\s*"?([^\s;"]*)', re.IGNORECASE)
_USUAL_JSON = frozenset({None, JSON, "application/json; charset=utf-8"})
_USUAL_MODES = {
    "": HttpForm.BINARY,
    JSON: HttpForm.BINARY,
    "application/cloudevents+json": HttpForm.STRUCTURED,
    STRUCTURED: HttpForm.STRUCTURED,
    "application/cloudevents-batch+json": HttpForm.BATCH,
    BATCH: HttpForm.BATCH,
}
_TEXT = re.compile(r"text/.*|.*[/+](?:xml|yaml)|application/(?:javascript|x-www-form-urlencoded|graphql|sql|toml|csv)")

# What a string payload may be written in. Only these: some of Python's other codecs are slow for hostile input.
_CODECS = {
    "": "utf-8",
    "utf-8": "utf-8",
    "utf8": "utf-8",
    "us-ascii": "utf-8",
    "ascii": "utf-8",
    "iso-8859-1": "latin-1",
    "latin1": "latin-1",
    "iso-8859-15": "iso8859-15",
    "windows-1252": "cp1252",
    "utf-16le": "utf-16-le",
    "utf-16be": "utf-16-be",
}


def mode_of(content_type: str) -> HttpForm:
    """The form the content type announces; UnsupportedFormat for a format of events other than JSON in UTF-8 (CEH-02)."""
    usual = _USUAL_MODES.get(content_type)
    if usual is not None:
        return usual
    essence = essence_of(content_type)
    if not essence.startswith(_PREFIX):
        return HttpForm.BINARY
    if charset_of(content_type) not in ("", "utf-8", "utf8"):
        raise UnsupportedFormat("the charset of events must be UTF-8", at="content-type", found=content_type)
    match essence:
        case "application/cloudevents+json":
            return HttpForm.STRUCTURED
        case "application/cloudevents-batch+json":
            return HttpForm.BATCH
        case _:
            wanted = f"{_BATCH_PREFIX if essence.startswith(_BATCH_PREFIX) else _PREFIX}+json"
            raise UnsupportedFormat("this format of events is not read", at="content-type", found=content_type, expected=wanted)


def is_cloudevents(content_type: str) -> bool:
    """Whether the content type alone says that the body holds whole events, in a format we read or not."""
    return content_type[: len(_PREFIX)].lower() == _PREFIX


def is_json(content_type: str | None) -> bool:
    """Whether a payload of this type is a JSON value; none given implies JSON (CEJ-04)."""
    return content_type in _USUAL_JSON or essence_of(content_type or "").endswith(("/json", "+json"))


def is_text(content_type: str) -> bool:
    """Whether a payload of this type is text that may stand as a string in JSON (CEH-09)."""
    return _TEXT.fullmatch(essence_of(content_type)) is not None


def codec_of(content_type: str) -> str | None:
    """Python's name for the charset of a text; UTF-8 when none is given, None when it is not one of those we write."""
    return _CODECS.get(charset_of(content_type))


def essence_of(content_type: str) -> str:
    """type/subtype in lower case, without parameters."""
    return content_type.partition(";")[0].strip().lower()


def charset_of(content_type: str) -> str:
    """The charset parameter in lower case; empty when there is none."""
    found = _CHARSET.search(content_type)
    return found[1].lower() if found else ""
