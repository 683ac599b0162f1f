"""`/mode`, `/owners`, `/status`: what a Hermes management tells of itself (HER-25, HER-26, HER-71)."""

from __future__ import annotations

from http import HTTPStatus
from typing import Literal

from fastapi import APIRouter, Query
from starlette.responses import PlainTextResponse, Response

from tidings.access.principals import Right
from tidings.doors.hermes.documents import stored
from tidings.doors.hermes.documents.owners import PLAINTEXT, SOURCES
from tidings.doors.hermes.names import MODE
from tidings.doors.hermes.refusals import ErrorCode, refused
from tidings.doors.hermes.resources.request import HermesCaller, done, told
from tidings.doors.hermes.resources.secret_headers import with_opened_headers
from tidings.registry.model import Paper

router = APIRouter(tags=["settings"])
_NO_SOURCE = "Owner source '{}' not found"


@router.get("/mode", response_class=PlainTextResponse)
async def get_mode(asked: HermesCaller) -> Response:
    """Whether documents can be changed: readWrite or readOnly."""
    return PlainTextResponse(stored.mode(asked.snapshot))


@router.post("/mode", response_class=Response)
async def set_mode(asked: HermesCaller, mode: Literal["readWrite", "readOnly"] = Query()) -> Response:
    """Keep documents from being changed, or let them be changed again."""
    asked.caller.require(Right.ADMIN)
    async with asked.changing:
        await asked.change([Paper(name=MODE, text={"mode": mode})])
    return done()


@router.get("/owners/sources")
async def list_sources(asked: HermesCaller) -> Response:
    """Where owners can be of."""
    return told(SOURCES)


@router.get("/owners/sources/{source}/{id}")
async def get_owner(source: str, id: str, asked: HermesCaller) -> Response:
    """One owner: of the source Plaintext every text is one."""
    _require_source(source)
    return told({"id": id, "name": id})


@router.get("/topics/owner/{source}/{id}")
async def topics_of_owner(source: str, id: str, asked: HermesCaller) -> Response:
    """The topics of an owner."""
    _require_source(source)
    wanted = {"source": source, "id": id}
    return told([one for one in stored.topics(asked.snapshot) if one["owner"] == wanted])


@router.get("/subscriptions/owner/{source}/{id}")
async def subscriptions_of_owner(source: str, id: str, asked: HermesCaller) -> Response:
    """The subscriptions of an owner."""
    _require_source(source)
    wanted = {"source": source, "id": id}
    found = (one for one in stored.all_subscriptions(asked.snapshot) if one["owner"] == wanted)
    return told([with_opened_headers(asked.parts.box, one) for one in found])


def _require_source(source: str) -> None:
    if source != PLAINTEXT:
        raise refused(ErrorCode.OWNER_SOURCE_NOT_FOUND, _NO_SOURCE.format(source), HTTPStatus.NOT_FOUND)
