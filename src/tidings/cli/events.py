"""Turns lines of input into CloudEvents and requests, for `publish`. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tidings.errors import Malformed

BATCH_TYPE = "application/cloudevents-batch+json"
MOST_EVENTS = 1000
MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Envelope:
    """Attributes for data that comes without an envelope of its own."""

    type: str
    source: str
    subject: str | None = None
    content_type: str | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """One event as it will be sent, and its line in the input."""

    number: int
    event: bytes


@dataclass(frozen=True, slots=True)
class PublishBatch:
    """Events that go in one request: all of them are stored, or none."""

    lines: tuple[Line, ...]

    @property
    def body(self) -> bytes:
        return b"[%b]" % b",".join(line.event for line in self.lines)


def as_event(text: str, envelope: Envelope, new_id: Callable[[], str], event_id: str | None = None) -> bytes:
    """The text as one CloudEvent in JSON. A CloudEvent is taken as it is; other JSON becomes its data, byte by byte."""
    if envelope.content_type is not None and "json" not in envelope.content_type:
        return _wrapped(json.dumps(text), envelope, event_id or new_id())
    try:
        # Numbers stay texts: only the members are looked at, and a number may have any length.
        value: Any = json.loads(text, parse_int=str, parse_float=str)
    except (ValueError, RecursionError) as error:
        raise Malformed("this is not JSON", found=text.strip(), expected="JSON, or --content-type text/plain") from error
    if isinstance(value, dict) and "specversion" in value:
        return text.encode()
    return _wrapped(text, envelope, event_id or new_id())


def _wrapped(data: str, envelope: Envelope, event_id: str) -> bytes:
    head = {
        "specversion": "1.0",
        "id": event_id,
        "source": envelope.source,
        "type": envelope.type,
        "subject": envelope.subject,
        "datacontenttype": envelope.content_type or "application/json",
    }
    written = json.dumps({name: value for name, value in head.items() if value is not None}, ensure_ascii=False)
    return f'{written[:-1]}, "data": {data.strip()}}}'.encode()


def lines_of(texts: Iterable[str], envelope: Envelope, new_id: Callable[[], str]) -> Iterator[Line]:
    """Every line that is not blank as an event. Raises Malformed with the number of a line that is not an event."""
    for number, text in enumerate(texts, 1):
        if not text.strip():
            continue
        try:
            yield Line(number, as_event(text, envelope, new_id))
        except Malformed as error:
            raise Malformed(error.what, at=f"line {number}", found=error.found, expected=error.expected) from error


def batches(lines: Iterable[Line]) -> Iterator[PublishBatch]:
    """The lines in requests of a size that every hub takes. What came before a bad line is still given out."""
    held: list[Line] = []
    size = 0
    try:
        for line in lines:
            if held and (len(held) == MOST_EVENTS or size + len(line.event) > MOST_BYTES):
                yield PublishBatch(tuple(held))
                held, size = [], 0
            held.append(line)
            size += len(line.event) + 1
    except Malformed:
        if held:
            yield PublishBatch(tuple(held))
        raise
    if held:
        yield PublishBatch(tuple(held))


def refused_line(batch: PublishBatch, problem: Any) -> int | None:
    """The line of the input that a refusal of this batch is about, where it says so."""
    faults = problem.get("errors") or []
    index = faults[0].get("index") if faults and isinstance(faults[0], dict) else None
    return batch.lines[index].number if isinstance(index, int) and 0 <= index < len(batch.lines) else None
