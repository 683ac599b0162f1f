"""Events as rows (FCL-22).

| column | holds |
|---|---|
| `id`, `source`, `type`, `subject`, `datacontenttype` | the attribute of a CloudEvent |
| `time` | a timestamp; what cannot be read as one is left in `attributes` |
| `data` | JSON text; a text of another type as it is; binary data in base64 (then `attributes` has `data_base64`) |
| `attributes` | every other attribute, as text |

What is no CloudEvent has only `data`: its JSON text, or the string itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import pyarrow as pa

from tidings.client.feeds.lines import FeedEvent

COLUMNS = ("id", "source", "type", "subject", "time", "datacontenttype", "data", "attributes")
DDL = (
    "id STRING, source STRING, type STRING, subject STRING, time TIMESTAMP, datacontenttype STRING, "
    "data STRING, attributes MAP<STRING, STRING>"
)
_ARROW = pa.schema(
    [
        ("id", pa.string()),
        ("source", pa.string()),
        ("type", pa.string()),
        ("subject", pa.string()),
        ("time", pa.timestamp("us", tz="UTC")),
        ("datacontenttype", pa.string()),
        ("data", pa.string()),
        ("attributes", pa.map_(pa.string(), pa.string())),
    ]
)
_NEEDED = ("id", "source", "type")

_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
Row = tuple[Any, ...]


def record_batch(events: Sequence[FeedEvent]) -> pa.RecordBatch:
    """The rows of some events."""
    rows = [row_of(event) for event in events]
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(COLUMNS)
    arrays = [pa.array(list(column), field.type) for column, field in zip(columns, _ARROW, strict=True)]
    return pa.record_batch(arrays, schema=_ARROW)


def row_of(event: FeedEvent) -> Row:
    """One event as the values of the columns."""
    if not event.raw.startswith(b"{"):
        return (*(None,) * 6, event.data if event.raw.startswith(b'"') else event.raw.decode(), None)
    members = _members.decode(event.raw)
    texts = {name: _text(value) for name, value in members.items() if name != "data"}
    if not all(bytes(members[name]).startswith(b'"') if name in members else False for name in _NEEDED):
        return (*(None,) * 6, event.raw.decode(), None)
    time = _time(texts.get("time"))
    if time is not None:
        texts.pop("time")
    taken = {name: texts.pop(name, None) for name in ("id", "source", "type", "subject", "datacontenttype")}
    data = _data(members.get("data"), taken["datacontenttype"])
    if "data_base64" in texts:
        data, texts["data_base64"] = texts["data_base64"], "true"
    attributes = [(name, value) for name, value in texts.items() if value is not None]
    return (*(taken[name] for name in COLUMNS[:4]), time, taken["datacontenttype"], data, attributes)


def _text(raw: msgspec.Raw) -> str | None:
    """A value as text: a string itself, null as nothing, anything else in JSON."""
    text = bytes(raw)
    if text == b"null":
        return None
    return msgspec.json.decode(text) if text.startswith(b'"') else text.decode()


def _data(raw: msgspec.Raw | None, content_type: str | None) -> str | None:
    if raw is None:
        return None
    is_json = content_type is None or content_type.partition(";")[0].strip().lower().endswith("json")
    return bytes(raw).decode() if is_json else _text(raw)


def _time(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at.astimezone(UTC) if at.tzinfo else None
