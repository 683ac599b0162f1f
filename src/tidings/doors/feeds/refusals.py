"""What this door refuses, each with a code that programs can rely on."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

import msgspec

from tidings.problems import Problem

TITLES: Mapping[str, str] = {
    "n-missing": "The number of partitions is missing",
    "n-unsupported": "The feed cannot be divided like this",
    "cursor-missing": "No cursor to go on from",
    "cursor-malformed": "This is no cursor of this feed",
    "cursor-expired": "Events after this cursor were removed after their retention",
    "partition-unknown": "There is no such partition",
    "pagesize-invalid": "This is no page size",
    "wait-invalid": "This is no time to wait",
    "payload-invalid": "That is not a form of payloads",
    "types-conflict": "Wanted and unwanted types exclude each other",
    "cursorset-invalid": "This is no cursor set",
    "cursorset-limit": "This consumer keeps as many cursor sets as it may",
    "resume-invalid": "This cannot be resumed",
    "resume-unknown": "Nothing was stored to resume from",
    "parameter-repeated": "A parameter is given twice",
    "parameter-unknown": "A parameter is misspelled",
    "token-stale": "The partitions have changed, discover them again",
    "not-found": "There is nothing of that name",
    "method-not-allowed": "This method means nothing here",
    "stopping": "The hub is stopping",
}


class FeedProblem(Problem, frozen=True, omit_defaults=True):
    """A refusal of a feed. `first` is the oldest cursor that can still be used."""

    first: str | None = None
    allow: str | None = None

    def headers(self) -> list[tuple[bytes, bytes]]:
        """As of any problem, and which methods there are."""
        allow = [(b"allow", self.allow.encode())] if self.allow is not None else []
        return [*super().headers(), *allow]


class FeedRefused(Exception):
    """The request is answered with this problem."""

    def __init__(self, problem: FeedProblem) -> None:
        super().__init__(problem.detail)
        self.problem = problem

    def at(self, instance: str) -> FeedProblem:
        """The problem as the caller of `instance` sees it."""
        return msgspec.structs.replace(self.problem, instance=instance)


def refused(code: str, detail: str, status: HTTPStatus = HTTPStatus.BAD_REQUEST) -> FeedRefused:
    """A refusal, 400 unless it says otherwise."""
    return FeedRefused(
        FeedProblem(type=f"urn:tidings:problem:{code}", title=TITLES[code], status=status, detail=detail, code=code)
    )


def stale() -> FeedRefused:
    """The token is not the one in force (FAPI-09)."""
    detail = "the token is missing or belongs to another list of partitions; get the list and the token again"
    return refused("token-stale", detail, HTTPStatus.CONFLICT)


def expired(cursor: str, first: str) -> FeedRefused:
    """The cursor lies before what is left (FEED-09)."""
    problem = refused(
        "cursor-expired", f"events after cursor {cursor} are gone; the oldest usable cursor is {first}", HTTPStatus.GONE
    ).problem
    return FeedRefused(msgspec.structs.replace(problem, first=first))


def wrong_method(method: str, allow: str) -> FeedRefused:
    """Only reading makes sense here (FEED-24)."""
    problem = refused("method-not-allowed", f"{method} is not possible; use {allow}", HTTPStatus.METHOD_NOT_ALLOWED).problem
    return FeedRefused(msgspec.structs.replace(problem, allow=allow))


def stopping() -> FeedRefused:
    """The hub is about to end."""
    problem = refused("stopping", "the hub is stopping; try again in a moment", HTTPStatus.SERVICE_UNAVAILABLE).problem
    return FeedRefused(msgspec.structs.replace(problem, retry_after=2))
