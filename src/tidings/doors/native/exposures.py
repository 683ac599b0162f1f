"""Exposures and approvals: who may publish and subscribe, and the decisions on single subscriptions."""

from __future__ import annotations

from http import HTTPStatus
from typing import Literal

import msgspec
from fastapi import APIRouter, Response
from pydantic import Field

from tidings.access.principals import Principal, Right
from tidings.doors import registry_changes
from tidings.doors.advice import advice_on
from tidings.doors.api_parts import ApiParts
from tidings.doors.native.bodies.scope import ScopeBody, scopes_from, shown_scopes
from tidings.doors.native.bodies.wire import Wire, name_in_path, same_name
from tidings.doors.native.callers import Caller, PartsOf, owns, topic_of
from tidings.doors.native.door_documents import refuse_derived
from tidings.doors.native.patch.merge_patch import Patch, patched, shown
from tidings.doors.requests.merge_patch import unless_changed
from tidings.errors import NotFound
from tidings.registry.model import Approval, ApprovalMode, ApprovalState, Exposure, Name
from tidings.registry.port import DocumentEnd
from tidings.registry.rules import decided, parse_name

router = APIRouter(tags=["exposures"])

WHOLE = frozenset({"scopes.*"})
"""Members that a patch replaces."""


class ExposureBody(Wire):
    """Who may publish to a topic and subscribe to it. `*` is everyone with the right, `team-*` all whose names begin so."""

    topic: str | None = None
    publishers: list[str] = Field(default_factory=lambda: ["*"])
    subscribers: list[str] = Field(default_factory=lambda: ["*"])
    approval: Literal["auto", "manual", "four-eyes"] = Field(
        default="auto", description="manual: no events until it is granted; four-eyes: by two different callers."
    )
    owner: str = Field(default="", description="Who offers the topic.")
    trusted: list[str] = Field(default_factory=list, description="Whose subscriptions need no approval.")
    scopes: dict[str, ScopeBody] = Field(
        default_factory=dict, description="What subscriptions choose from; `default` holds for those that name none."
    )
    warnings: list[str] | None = Field(default=None, description="Only shown: what may not be meant as it is written.")


class ExposureView(ExposureBody):
    """An exposure as it is."""

    topic: str


class ExposureList(Wire):
    """Exposures by topic."""

    exposures: list[ExposureView]


class ApprovalBody(Wire):
    """A decision."""

    state: Literal["granted", "rejected"]
    reason: str = ""


class ApprovalView(Wire):
    """Where one subscription to one topic stands."""

    subscription: str
    topic: str
    state: Literal["pending", "granted", "rejected"]
    reason: str


class ApprovalList(Wire):
    """Approvals by subscription and topic."""

    approvals: list[ApprovalView]


def exposure_from(topic: Name, body: ExposureBody) -> Exposure:
    """The exposure that a body describes."""
    return Exposure(
        topic=topic,
        publishers=tuple(body.publishers),
        subscribers=tuple(body.subscribers),
        approval=ApprovalMode(body.approval),
        scopes=scopes_from(body.scopes),
        owner=body.owner,
        trusted=tuple(body.trusted),
    )


def view_of(exposure: Exposure) -> ExposureView:
    """The exposure as it is shown."""
    return ExposureView(
        topic=str(exposure.topic),
        publishers=list(exposure.publishers),
        subscribers=list(exposure.subscribers),
        approval=exposure.approval.value,
        scopes=shown_scopes(exposure.scopes),
        owner=exposure.owner,
        trusted=list(exposure.trusted),
    )


@router.get("/api/exposures")
async def list_exposures(parts: PartsOf, caller: Caller) -> ExposureList:
    """All exposures."""
    caller.require(Right.ADMIN)
    return ExposureList(exposures=[view_of(exposure) for _, exposure in sorted(parts.snapshot.exposures.items())])


@router.get("/api/exposures/{topic:path}")
async def get_exposure(topic: str, parts: PartsOf, caller: Caller) -> ExposureView:
    """The exposure of a topic."""
    caller.require(Right.ADMIN)
    name = topic_of(parts, caller, topic).name
    exposure = parts.snapshot.exposures.get(name)
    if exposure is None:
        raise NotFound(f"the topic {name} has no exposure: it is open to everyone with the right")
    return view_of(exposure)


@router.put("/api/exposures/{topic:path}", responses={201: {"model": ExposureView, "description": "Created."}})
async def put_exposure(topic: str, body: ExposureBody, parts: PartsOf, caller: Caller, response: Response) -> ExposureView:
    """Create or replace the exposure of a topic: what is left out is the default. PATCH changes single members."""
    caller.require(Right.ADMIN)
    wanted = exposure_from(same_name(topic, body.topic), body)
    response.status_code = HTTPStatus.OK if wanted.topic in parts.snapshot.exposures else HTTPStatus.CREATED
    return await _stored(parts, caller, wanted)


@router.patch("/api/exposures/{topic:path}", responses={201: {"model": ExposureView, "description": "Created."}})
async def patch_exposure(topic: str, patch: Patch, parts: PartsOf, caller: Caller, response: Response) -> ExposureView:
    """Change what the body names, and nothing else, or create an exposure with it. `scopes` are merged by their names."""
    caller.require(Right.ADMIN)
    name = parse_name(topic)
    standing = parts.snapshot.exposures.get(name)
    known = {} if standing is None else shown(view_of(standing), ExposureBody, "topic", "warnings")
    body = patched(ExposureBody, known, patch, WHOLE)
    response.status_code = HTTPStatus.CREATED if standing is None else HTTPStatus.OK
    guard = unless_changed(lambda now: now.exposures.get(name), standing)
    return await _stored(parts, caller, exposure_from(same_name(topic, body.topic), body), guard)


async def _stored(
    parts: ApiParts, caller: Principal, wanted: Exposure, guard: registry_changes.Guard = registry_changes.nothing_against
) -> ExposureView:
    refuse_derived(parts.doors, [wanted])
    await registry_changes.put(parts, [wanted], caller.name, guard)
    return view_of(wanted).model_copy(update={"warnings": advice_on(wanted, parts.regex) or None})


@router.delete("/api/exposures/{topic:path}", status_code=HTTPStatus.NO_CONTENT)
async def delete_exposure(topic: str, parts: PartsOf, caller: Caller) -> None:
    """Open the topic to everyone with the right."""
    caller.require(Right.ADMIN)
    ending = DocumentEnd(Exposure, name_in_path(topic, "topic"))
    refuse_derived(parts.doors, (), [ending])
    await registry_changes.end(parts, ending, caller.name)


@router.get("/api/approvals")
async def list_approvals(parts: PartsOf, caller: Caller) -> ApprovalList:
    """Approvals of the caller's subscriptions; for administrators, all."""
    subscriptions = parts.snapshot.subscriptions
    mine = [one for (name, _), one in sorted(parts.snapshot.approvals.items()) if owns(caller, subscriptions[name])]
    return ApprovalList(approvals=list(map(_approval_view, mine)))


@router.put("/api/approvals/{subscription:path}/{topic}")
async def put_approval(subscription: str, topic: str, body: ApprovalBody, parts: PartsOf, caller: Caller) -> ApprovalView:
    """Decide on one subscription to one topic. A name with `/` in its namespace is written with %2F."""
    caller.require(Right.ADMIN)
    pair = _standing(parts, f"{subscription}/{topic}")
    caller.require(Right.ADMIN, pair[1])
    standing, exposure = parts.snapshot.approvals[pair], parts.snapshot.exposures[pair[1]]
    said = decided(standing, exposure.approval, ApprovalState(body.state), caller.name)
    decision = msgspec.structs.replace(said, reason=body.reason)
    await registry_changes.put(parts, [decision], caller.name)
    return _approval_view(decision)


def _standing(parts: ApiParts, path: str) -> tuple[Name, Name]:
    """The pair that the path names. Namespaces may hold slashes, so it is looked up instead of being cut."""
    for name, topic in parts.snapshot.approvals:
        if f"{name}/{topic}" == path:
            return name, topic
    raise NotFound(f"there is no approval {path[:160]}", expected="an exposed topic and a subscription that asks for it")


def _approval_view(approval: Approval) -> ApprovalView:
    return ApprovalView(
        subscription=str(approval.subscription), topic=str(approval.topic), state=approval.state.value, reason=approval.reason
    )
