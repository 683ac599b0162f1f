"""Refusals of the native door: every error becomes problem+json by the one table, whatever raised it."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Any

import msgspec

from tidings.doors.requests.error_form import ErrorForm
from tidings.problems import Problem, problem_of, transport_problem, unexpected

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


def _plain(status: HTTPStatus, detail: str, path: str) -> Problem:
    problem = transport_problem(status, status.phrase.lower().replace(" ", "-"), detail)
    return msgspec.structs.replace(problem, instance=path)


FORM = ErrorForm(logging.getLogger("tidings.native"), of=problem_of, plain=_plain, mistake=unexpected)
