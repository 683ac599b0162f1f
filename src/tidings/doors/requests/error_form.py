"""How a door writes errors, as a value: the framework's applications and the paths without a framework answer by it.

The statuses of errors are in one table, `problems.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Generic, Protocol, TypeVar

from tidings.errors import TidingsError
from tidings.server.asgi import ClientLeft

T = TypeVar("T")


class WireRefusal(Protocol):
    """A refusal as it goes out."""

    @property
    def status(self) -> int: ...

    def body(self) -> bytes: ...

    def headers(self) -> list[tuple[bytes, bytes]]:
        """What goes with the body, its length left out."""


R = TypeVar("R", bound=WireRefusal)


@dataclass(frozen=True, slots=True)
class ErrorForm(Generic[R]):
    """How a door writes refusals; each function gets the path that was asked for last.

    `of`: an error of the hub. `plain`: what the HTTP layer refuses, such as an unknown path. `mistake`: the hub failed; the details
    are in the log of `logger`. `own`: errors that only this door knows.
    """

    logger: logging.Logger
    of: Callable[[TidingsError, str], R]
    plain: Callable[[HTTPStatus, str, str], R]
    mistake: Callable[[str], R]
    own: Mapping[type[Exception], Callable[[Any], R]] = field(default_factory=dict)


async def tried(work: Awaitable[T], form: ErrorForm[R], path: str) -> T | R:
    """What comes of a request, or its refusal. Raises only ClientLeft: nobody is there to be answered."""
    try:
        return await work
    except TidingsError as error:
        return form.of(error, path)
    except ClientLeft:
        raise
    except Exception as error:
        if type(error) in form.own:
            return form.own[type(error)](error)
        form.logger.exception("answering %s failed", path)
        return form.mistake(path)
