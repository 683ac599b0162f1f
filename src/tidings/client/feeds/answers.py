"""What an answer means when it is no page: the one place where statuses are judged (FCL-01, FCL-09, FCL-18)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import msgspec

from tidings.errors import CursorExpired, HubProblem, HubUnreachable, TidingsError, TokenStale

_EXPECTED_BY_V1 = "a feed of version 1 needs partition_count"


def is_page(status: int) -> bool:
    """Whether there is something to read in it. 204 counts: some servers have nothing to say in that way."""
    return 200 <= status < 300


def is_version_1(status: int) -> bool:
    """Whether a feed that was asked without any parameter says in this way that it knows only version 1."""
    return status == 400


def refusal(status: int, headers: Mapping[str, str], body: bytes, *, url: str) -> TidingsError:
    """The answer as an error; `headers` with lower-case names."""
    problem = {"status": status, **_problem(body)}
    said = problem.get("detail") or problem.get("title") or f"the feed answered {status}"
    match status:
        case 409:
            return TokenStale(f"{said}", problem)
        case 410:
            return CursorExpired(f"{said}", problem)
        case 429 | 408 | 425:
            return _later(f"{url} is asked too often", headers)
        case _ if status >= 500:
            return _later(f"{url} does not work now: it answered {status}", headers)
        case _:
            return HubProblem(f"{said}", problem)


def without_count(error: HubProblem) -> HubProblem:
    """The refusal of a bare request, with what may be missing."""
    return HubProblem(f"{error.what}; {_EXPECTED_BY_V1}", error.problem)


def undiscovered(error: TidingsError, url: str) -> TidingsError:
    """The refusal of a bare request, with what is probably wrong with the address."""
    if isinstance(error, HubProblem) and url.partition("?")[0].rstrip("/").endswith("/events"):
        return type(error)(f"{error.what}; the address of a feed ends before /events", error.problem)
    return error


def is_unknown_resume(error: HubProblem) -> bool:
    """Whether the publisher keeps no cursor under that name yet."""
    return error.problem.get("code") == "resume-unknown"


def _later(what: str, headers: Mapping[str, str]) -> HubUnreachable:
    error = HubUnreachable(what)
    error.retry_after = seconds_of(headers.get("retry-after"), datetime.now(UTC)) or 0
    return error


def seconds_of(text: str | None, now: datetime) -> int | None:
    """A Retry-After, in seconds from now: a number or a date. None when it cannot be read."""
    if not text:
        return None
    if text.strip().isascii() and text.strip().isdigit():
        return min(int(text.strip()[:6]), 86400)
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0, int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() - now.timestamp()))


def _problem(body: bytes) -> dict[str, object]:
    try:
        found = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
