"""Where a retransmission goes back to (HER-136, HER-137): a date, hours from now, or an object with a date. Pure."""

from __future__ import annotations

import re
from datetime import datetime, tzinfo
from typing import Any

from tidings.clock import SECOND, Instant
from tidings.doors.hermes.refusals import ErrorCode, refused
from tidings.errors import Malformed
from tidings.events import json_text

_HOURS = re.compile(r"-(\d{1,6})h")
_EXPECTED = "expected a date such as 2015-09-03T13:30:00.000, hours such as -6h, or an object with retransmissionDate"


def retransmission_start(body: bytes, now: Instant, zone: tzinfo) -> Instant:
    """The time from which messages are sent again. Raises HermesRefused."""
    text = _written(body)
    hours = _HOURS.fullmatch(text)
    if hours:
        return Instant(max(0, now - int(hours[1]) * 3600 * SECOND))
    try:
        moment = datetime.fromisoformat(text)
        placed = moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)
        return Instant(max(0, int(placed.timestamp() * SECOND)))
    except (ValueError, OverflowError) as error:
        raise _refused(text) from error


def _written(body: bytes) -> str:
    try:
        value: Any = json_text.parse(body)
    except Malformed:
        # Bare, as the page has it.
        value = body.decode("utf-8", "replace")
    if isinstance(value, dict):
        value = value.get("retransmissionDate")
    if not isinstance(value, str):
        raise _refused("" if value is None else str(value))
    return value.strip()


def _refused(text: str) -> Exception:
    return refused(ErrorCode.FORMAT_ERROR, f"{text[:80] or 'the body'} says no time: {_EXPECTED}")
