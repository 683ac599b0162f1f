"""`/groups`: groups of topics (HER-10)."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import APIRouter, Request
from starlette.responses import Response

from tidings.doors.hermes.documents import stored
from tidings.doors.hermes.documents.groups import group_document
from tidings.doors.hermes.names import group_paper
from tidings.doors.hermes.refusals import ErrorCode, refused
from tidings.doors.hermes.resources.request import HermesCaller, body_schema, document_of, done, told
from tidings.registry.model import Paper
from tidings.registry.port import DocumentEnd

router = APIRouter(tags=["groups"])
_BODY = body_schema("groupName")


@router.get("/groups")
async def list_groups(asked: HermesCaller) -> Response:
    """The names of all groups."""
    return told([one["groupName"] for one in stored.groups(asked.snapshot)])


@router.get("/groups/{group}")
async def get_group(group: str, asked: HermesCaller) -> Response:
    """One group."""
    return told(stored.group(asked.snapshot, group))


@router.post("/groups", status_code=HTTPStatus.CREATED, openapi_extra=_BODY, response_class=Response)
async def create_group(request: Request, asked: HermesCaller) -> Response:
    """Create a group."""
    asked.require_changing()
    document = group_document(await document_of(request), asked.parts.settings.hermes.group_names)
    name = document["groupName"]
    async with asked.changing:
        if stored.has_paper(asked.snapshot, group_paper(name)):
            raise refused(ErrorCode.GROUP_ALREADY_EXISTS, f"Group {name} already exists")
        await asked.change([Paper(name=group_paper(name), text=document)])
    return done(HTTPStatus.CREATED)


@router.put("/groups/{group}", status_code=HTTPStatus.NO_CONTENT, openapi_extra=body_schema(), response_class=Response)
async def update_group(group: str, request: Request, asked: HermesCaller) -> Response:
    """Replace what is said of a group."""
    asked.require_changing()
    raw = await document_of(request)
    named = {**raw, "groupName": group} if isinstance(raw, dict) else raw
    async with asked.changing:
        stored.group(asked.snapshot, group)
        document = group_document(named, asked.parts.settings.hermes.group_names)
        await asked.change([Paper(name=group_paper(group), text=document)])
    return done(HTTPStatus.NO_CONTENT)


@router.delete("/groups/{group}", response_class=Response)
async def delete_group(group: str, asked: HermesCaller) -> Response:
    """Delete a group without topics."""
    asked.require_changing()
    async with asked.changing:
        stored.group(asked.snapshot, group)
        if stored.topics(asked.snapshot, group):
            raise refused(ErrorCode.GROUP_NOT_EMPTY, f"Group {group} is not empty")
        await asked.change([], [DocumentEnd(Paper, group_paper(group))])
    return done()
