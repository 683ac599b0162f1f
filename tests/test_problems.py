from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tidings import errors, problems
from tidings.errors import EventFault, InvalidEvent, Overloaded, TidingsError
from tidings.problems import problem_of, status_of


def every_kind(kind: type[TidingsError] = TidingsError) -> Iterator[type[TidingsError]]:
    yield kind
    for child in kind.__subclasses__():
        if child.__module__ == "tidings.errors":
            yield from every_kind(child)


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (errors.Malformed, 400),
        (errors.FilterSyntaxError, 400),
        (errors.Unauthenticated, 401),
        (errors.Forbidden, 403),
        (errors.NotFound, 404),
        (errors.Conflict, 409),
        (errors.DuplicateEvent, 409),
        (errors.Expired, 410),
        (errors.TooLarge, 413),
        (errors.UnsupportedFormat, 415),
        (errors.LogUnavailable, 503),
        (errors.Overloaded, 503),
        (errors.NotReady, 503),
        (errors.StreamIdle, 504),
        (errors.DataFolderUnusable, 500),
    ],
)
def test_each_error_has_its_status(kind: type[TidingsError], status: int) -> None:
    assert status_of(kind("something is wrong")) == status


@pytest.mark.parametrize("kind", [kind for kind in every_kind() if issubclass(kind, (errors.Rejected, errors.Unavailable))])
def test_every_refusal_that_a_caller_may_see_has_a_title(kind: type[TidingsError]) -> None:
    assert kind.code in problems.TITLES


def test_a_problem_says_what_where_and_what_would_be_right() -> None:
    error = errors.Malformed("this is no cursor", at="after", found="x", expected="a cursor")
    assert json.loads(problem_of(error, "/api/topics/orders/events").body()) == {
        "type": "urn:tidings:problem:malformed",
        "title": "The request cannot be read",
        "status": 400,
        "detail": "this is no cursor at after, found 'x'; expected a cursor",
        "instance": "/api/topics/orders/events",
        "code": "malformed",
    }


def test_a_problem_names_every_bad_event() -> None:
    problem = problem_of(InvalidEvent([EventFault(3, "source", "missing", "source is missing")]))
    assert json.loads(problem.body())["errors"] == [
        {"index": 3, "attribute": "source", "code": "missing", "detail": "source is missing"}
    ]


def test_what_may_work_later_says_when() -> None:
    assert (b"retry-after", b"7") in problem_of(Overloaded("too much is waiting", retry_after=7)).headers()


def test_who_is_unknown_is_told_how_to_say_it() -> None:
    assert any(name == b"www-authenticate" for name, _ in problem_of(errors.Unauthenticated("who?")).headers())


def test_a_mistake_of_the_hub_tells_nothing_of_its_inside() -> None:
    problem = problems.unexpected("/api/status")
    assert (problem.status, problem.code, problem.instance) == (500, "internal", "/api/status")
