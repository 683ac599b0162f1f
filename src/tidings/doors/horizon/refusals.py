"""Refusals as Horizon writes them (HOR-08): type, title, status, detail, no instance; `violations` where faults can be listed."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, NamedTuple

import msgspec

from tidings.errors import EventFault, Rejected, TidingsError, Unavailable
from tidings.problems import CONTENT_TYPE, TITLES, status_of

TYPE = "about:blank"
CHALLENGE = (b"www-authenticate", b'Bearer realm="horizon"')


class Refusal(NamedTuple):
    """A refusal as it is answered."""

    status: int
    title: str
    detail: str
    violations: Sequence[dict[str, Any]] = ()
    retry_after: int | None = None

    def body(self) -> bytes:
        members: dict[str, Any] = {"type": TYPE, "title": self.title, "status": self.status, "detail": self.detail}
        if self.violations:
            members["violations"] = self.violations
        return msgspec.json.encode(members)

    def headers(self) -> list[tuple[bytes, bytes]]:
        """What goes with the body, its length left out."""
        headers = [(b"content-type", CONTENT_TYPE)]
        if self.retry_after is not None:
            headers.append((b"retry-after", b"%d" % self.retry_after))
        if self.status == HTTPStatus.UNAUTHORIZED:
            headers.append(CHALLENGE)
        return headers


def refusal_of(error: TidingsError) -> Refusal:
    """An error of the hub as this door tells it."""
    return Refusal(
        status=status_of(error),
        title=TITLES.get(error.code, "Something is wrong"),
        detail=str(error),
        violations=[_violation(fault) for fault in error.faults] if isinstance(error, Rejected) else (),
        retry_after=error.retry_after if isinstance(error, Unavailable) else None,
    )


def plain_refusal(status: HTTPStatus, detail: str) -> Refusal:
    """A refusal of the HTTP layer: no such path, no such method."""
    return Refusal(status, status.phrase, detail)


def mistake() -> Refusal:
    """What is told when the hub itself made a mistake; its log has the rest."""
    return plain_refusal(HTTPStatus.INTERNAL_SERVER_ERROR, "the hub made a mistake; its log has the details")


def _violation(fault: EventFault) -> dict[str, Any]:
    return {"path": fault.attribute, "reason": fault.detail, "document": fault.index}
