"""Refusals of the native door: every error becomes problem+json by the one table, whatever raised it."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Any

import msgspec
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from tidings.doors.allowed_methods import allowed_methods
from tidings.doors.shape_faults import faults_of
from tidings.errors import InvalidDocument, TidingsError
from tidings.problems import Problem, problem_of, transport_problem, unexpected

logger = logging.getLogger("tidings.native")

REFUSALS: dict[int | str, dict[str, Any]] = {
    "4XX": {
        "description": "Refused: a problem (RFC 9457) with `code` and `detail`.",
        "content": {"application/problem+json": {}},
    },
    "503": {
        "description": "Not possible now; Retry-After says when to try again.",
        "content": {"application/problem+json": {}},
    },
}
"""How refusals are described in the OpenAPI document."""


def answer(problem: Problem) -> Response:
    """A refusal as a response."""
    headers = {name.decode(): value.decode() for name, value in problem.headers()}
    return Response(problem.body(), problem.status, headers)


def install(app: FastAPI) -> None:
    """Answer every error of this application by the table."""
    app.add_exception_handler(TidingsError, _ours)
    app.add_exception_handler(RequestValidationError, _shape)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(ClientDisconnect, _left)
    app.add_exception_handler(Exception, _mistake)


async def _ours(request: Request, error: Exception) -> Response:
    assert isinstance(error, TidingsError)
    return answer(problem_of(error, request.url.path))


async def _shape(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return answer(problem_of(InvalidDocument(faults_of(error.errors())), request.url.path))


async def _http(request: Request, error: Exception) -> Response:
    """What the router itself refuses: no such path, no such method."""
    assert isinstance(error, HTTPException)
    status = HTTPStatus(error.status_code)
    detail = f"there is nothing at {request.url.path}" if status == HTTPStatus.NOT_FOUND else str(error.detail)
    problem = transport_problem(status, status.phrase.lower().replace(" ", "-"), detail)
    refused = answer(msgspec.structs.replace(problem, instance=request.url.path))
    refused.headers.update(error.headers or {})
    if status is HTTPStatus.METHOD_NOT_ALLOWED:
        # The router names the methods of one route only.
        refused.headers["allow"] = allowed_methods(request)
    return refused


async def _left(request: Request, error: Exception) -> Response:
    """Whoever asked is gone; nobody reads this."""
    return Response(status_code=400)


async def _mistake(request: Request, error: Exception) -> Response:
    logger.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return answer(unexpected(request.url.path))
