"""Errors as a door writes them: by the framework's applications and by the paths without a framework."""

from __future__ import annotations

import asyncio
import logging
from http import HTTPStatus
from typing import NamedTuple

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from tidings.doors.requests.error_answers import install
from tidings.doors.requests.error_form import ErrorForm, tried
from tidings.errors import Forbidden, Overloaded, TidingsError
from tidings.problems import status_of
from tidings.server.asgi import ClientLeft


class ClosedClub(Exception):
    """An error that only the club knows."""


class ClubRefusal(NamedTuple):
    status: int
    words: str

    def body(self) -> bytes:
        return self.words.encode()

    def headers(self) -> list[tuple[bytes, bytes]]:
        return [(b"content-type", b"text/club")]


FORM = ErrorForm(
    logging.getLogger("tidings.club"),
    of=lambda error, path: ClubRefusal(status_of(error), f"{path}: {error}"),
    plain=lambda status, detail, path: ClubRefusal(status, f"no: {detail}"),
    mistake=lambda path: ClubRefusal(500, f"{path}: a mistake"),
    own={ClosedClub: lambda error: ClubRefusal(423, f"closed: {error}")},
)


@pytest.fixture
def client() -> TestClient:
    app = FastAPI()
    install(app, FORM)

    @app.get("/members/{number}")
    async def member(number: int) -> int:
        raise {1: Forbidden("not you"), 2: ClosedClub("on Mondays"), 3: RuntimeError("oh")}[number]

    @app.delete("/members/{number}")
    async def leave(number: int) -> None:
        raise Overloaded("later")

    return TestClient(app, raise_server_exceptions=False)


@pytest.mark.parametrize(
    ("method", "path", "status", "body"),
    [
        ("GET", "/members/1", 403, "/members/1: not you"),
        ("GET", "/members/2", 423, "closed: on Mondays"),
        ("GET", "/members/3", 500, "/members/3: a mistake"),
        ("DELETE", "/members/1", 503, "/members/1: later"),
        ("GET", "/members", 404, "no: there is nothing at /members"),
    ],
)
def test_an_application_answers_every_error_in_its_form(
    client: TestClient, method: str, path: str, status: int, body: str
) -> None:
    answer = client.request(method, path)
    assert (answer.status_code, answer.text, answer.headers["content-type"]) == (status, body, "text/club")


def test_a_value_of_the_wrong_shape_is_an_error_of_the_hub(client: TestClient) -> None:
    answer = client.get("/members/x")
    assert answer.status_code == 400 and "number" in answer.text


def test_a_wrong_method_names_those_of_all_routes(client: TestClient) -> None:
    answer = client.put("/members/1")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, DELETE")


def tried_with(error: Exception | None) -> object:
    async def work() -> str:
        if error is not None:
            raise error
        return "done"

    return asyncio.run(tried(work(), FORM, "/club"))


def test_a_path_without_the_framework_answers_in_the_same_form(caplog: pytest.LogCaptureFixture) -> None:
    assert tried_with(None) == "done"
    assert tried_with(Forbidden("not you")) == (HTTPStatus.FORBIDDEN, "/club: not you")
    assert tried_with(ClosedClub("today")) == (423, "closed: today")
    assert not caplog.records
    assert tried_with(RuntimeError("oh")) == (500, "/club: a mistake")
    assert "oh" in caplog.text
    with pytest.raises(ClientLeft):
        tried_with(ClientLeft())


def test_every_error_of_the_hub_has_a_form() -> None:
    def kinds(kind: type[TidingsError]) -> list[type[TidingsError]]:
        return [kind, *(one for child in kind.__subclasses__() for one in kinds(child))]

    assert all(400 <= status_of(kind.__new__(kind)) < 600 for kind in kinds(TidingsError))
