"""Errors as answers of an application in the framework: installed once here, written as each door writes them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from tidings.doors.requests.allowed_methods import allowed_methods
from tidings.doors.requests.error_form import ErrorForm, R, WireRefusal
from tidings.doors.requests.shape_faults import faults_of
from tidings.errors import InvalidDocument, TidingsError
from tidings.server.asgi import ClientLeft


def install(app: FastAPI, form: ErrorForm[R]) -> None:
    """Answer every error of this application in this form."""

    async def ours(request: Request, error: Exception) -> Response:
        assert isinstance(error, TidingsError)
        return response_of(form.of(error, request.url.path))

    async def shape(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return response_of(form.of(InvalidDocument(faults_of(error.errors())), request.url.path))

    async def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        status, path = HTTPStatus(error.status_code), request.url.path
        detail = f"there is nothing at {path}" if status is HTTPStatus.NOT_FOUND else str(error.detail)
        refused = response_of(form.plain(status, detail, path))
        refused.headers.update(error.headers or {})
        if status is HTTPStatus.METHOD_NOT_ALLOWED:
            # The router names the methods of one route only.
            refused.headers["allow"] = allowed_methods(request)
        return refused

    async def left(request: Request, error: Exception) -> Response:
        """Whoever asked is gone; nobody reads this."""
        return Response(status_code=HTTPStatus.BAD_REQUEST)

    async def mistake(request: Request, error: Exception) -> Response:
        form.logger.error("%s %s failed", request.method, request.url.path, exc_info=error)
        return response_of(form.mistake(request.url.path))

    def own(write: Callable[[Any], R]) -> Callable[[Request, Exception], Awaitable[Response]]:
        async def answered(request: Request, error: Exception) -> Response:
            return response_of(write(error))

        return answered

    app.add_exception_handler(TidingsError, ours)
    app.add_exception_handler(RequestValidationError, shape)
    app.add_exception_handler(HTTPException, http)
    for gone in (ClientLeft, ClientDisconnect):
        app.add_exception_handler(gone, left)
    for kind, write in form.own.items():
        app.add_exception_handler(kind, own(write))
    app.add_exception_handler(Exception, mistake)


def response_of(refusal: WireRefusal) -> Response:
    """A refusal as a response of the framework."""
    headers = {name.decode(): value.decode() for name, value in refusal.headers()}
    return Response(refusal.body(), refusal.status, headers)
