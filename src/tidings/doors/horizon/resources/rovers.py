"""`/horizon/rover/v1/{environment}`: documents are applied, shown and deleted (HOR-11, HOR-163, HOR-166)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from tidings.doors import handshakes, registry_changes
from tidings.doors.horizon.callers import team_for
from tidings.doors.horizon.documents.apply_plan import API_VERSION, ApplyPlan, Given, given, planned, removed
from tidings.doors.horizon.documents.apply_results import Telling, document_result, shown_rover
from tidings.doors.horizon.documents.consequences import MOST, is_new, new_environment, state_changes
from tidings.doors.horizon.documents.environment import Environment
from tidings.doors.horizon.documents.request_body import documents_in
from tidings.doors.horizon.documents.schemas import SCHEMAS
from tidings.doors.horizon.documents.specifications import Specification
from tidings.doors.horizon.names import KINDS, ROVER, Team, paper_name
from tidings.doors.horizon.resources.listings import environments_seen
from tidings.doors.horizon.resources.request import AskedBy, HorizonRequest, body_of, hub_address
from tidings.errors import Conflict, Forbidden, Malformed, NotFound, UnsupportedFormat
from tidings.events.content_types import essence_of
from tidings.events.headers import content_type_of
from tidings.registry.model import Paper, Snapshot
from tidings.registry.rules import World, applied, plan_change
from tidings.registry.rules.keys import canonical

router = APIRouter(tags=["documents"])

TRIES = 5
"""How often a plan is made anew because somebody else changed something meanwhile."""

MOST_DOCUMENTS = 1000
Kind = Literal["Rover", "EventSpecification"]

_YAML = ("application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml", "text/plain")
_UNSAID = ("", "application/x-www-form-urlencoded", "application/octet-stream")
"""What curl says unless told otherwise. YAML reads JSON as well."""

_DOCUMENT: dict[str, Any] = {
    "type": "object",
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "properties": {
        "apiVersion": {"const": API_VERSION},
        "kind": {"enum": list(KINDS)},
        "metadata": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "minLength": 1}}},
        "spec": {"type": "object", "description": "As /horizon/schemas/*.json say; a Rover's has also its `zone`."},
    },
}
_DOCUMENTS = {"anyOf": [_DOCUMENT, {"type": "array", "items": _DOCUMENT, "minItems": 1}]}
_BODY = {
    "requestBody": {
        "required": True,
        "content": {kind: {"schema": _DOCUMENTS} for kind in ("application/json", "application/yaml")},
    }
}
_TEAM = Query(None, description="The team whose documents are meant, as hub--team; for administrators.")


@router.post("/horizon/rover/v1/{environment}/apply", openapi_extra=_BODY)
async def apply(
    request: Request,
    asked: AskedBy,
    team: str | None = _TEAM,
    dry_run: bool = Query(False, alias="dryRun", description="Only say what would change."),
) -> dict[str, Any]:
    """Bring an environment to what Rover and EventSpecification documents say: all of it, or nothing."""
    _require_writing(asked)
    owner = team_for(asked.client, asked.parts.settings.horizon, team)
    kind = essence_of(content_type_of(request.scope["headers"]))
    documents = await asyncio.to_thread(_read, await body_of(request), kind, owner, asked)

    def plan(now: Snapshot) -> ApplyPlan:
        # Judged anew where somebody else was quicker: then only the document itself may speak of faults.
        fresh = [given(one.raw, owner, asked.ground) for one in documents]
        documents[:] = fresh
        found = planned(now, asked.shelf.standing(now, asked.environment), fresh, asked.ground)
        _guard(asked, owner, fresh, found, now)
        return found

    done, before, after = await _changed(asked, plan, dry_run=dry_run)
    warnings_about = partial(handshakes.warnings_about, asked.parts)
    telling = Telling(done.before, done.after, after, hub_address(asked.parts), warnings_about, before)
    results = [_result(one, before.papers.get(one.paper(asked.environment).name), telling) for one in documents]
    answer = {"environment": asked.environment, "dryRun": dry_run, "results": results}
    return {**answer, **_consequences(asked, before, after, results)}


@router.get("/horizon/rover/v1/{environment}/{kind}/{name}")
async def show(kind: Kind, name: str, asked: AskedBy, team: str | None = _TEAM) -> dict[str, Any]:
    """A document as it was written; a Rover with its client id, subscription ids, states and stream addresses."""
    now = asked.parts.snapshot
    paper = _paper(asked, now, kind, name, team)
    raw = dict(paper.text)
    if kind != ROVER:
        return raw
    standing = asked.shelf.standing(now, asked.environment)
    return shown_rover(paper.name.name, raw, Telling(standing, standing, now, hub_address(asked.parts)))


@router.delete("/horizon/rover/v1/{environment}/{kind}/{name}", status_code=HTTPStatus.NO_CONTENT)
async def delete(kind: Kind, name: str, asked: AskedBy, team: str | None = _TEAM) -> Response:
    """Delete a document and everything that it asked for."""
    _require_writing(asked)
    paper = _paper(asked, asked.parts.snapshot, kind, name, team)

    def plan(now: Snapshot) -> ApplyPlan:
        found = removed(now, asked.shelf.standing(now, asked.environment), kind, paper.name.name, asked.ground)
        if kind != ROVER and not (asked.client.admin or asked.client.unchecked):
            _guard_specification(asked, paper.owner, str(paper.text["spec"].get("type")), paper, found.before)
        return found

    await _changed(asked, plan, dry_run=False)
    return Response(status_code=HTTPStatus.NO_CONTENT)


@router.get("/horizon/schemas/{name}.json")
async def schema(name: Literal["exposure", "subscription", "event-specification"]) -> dict[str, Any]:
    """The JSON Schema of an exposure, a subscription or a specification, as documents hold them."""
    return SCHEMAS[name]


def _require_writing(asked: HorizonRequest) -> None:
    if not asked.client.writes:
        raise Forbidden(f"{asked.client.id} may not change documents", expected="a token that names its client")


def _read(text: bytes, kind: str, team: Team, asked: HorizonRequest) -> list[Given]:
    """The documents of a body. Raises Malformed."""
    json = kind == "application/json"
    if not json and kind not in _YAML + _UNSAID:
        raise UnsupportedFormat("these are no documents", at="content-type", found=kind, expected="YAML or JSON")
    raws = documents_in(text, json=json)
    if not raws or len(raws) > MOST_DOCUMENTS:
        raise Malformed("there are no documents, or too many", found=len(raws), expected=f"1 to {MOST_DOCUMENTS}")
    return [given(raw, team, asked.ground) for raw in raws]


def _guard(asked: HorizonRequest, team: Team, documents: list[Given], plan: ApplyPlan, now: Snapshot) -> None:
    """Refuse specifications of others: one belongs to the team that exposes its type, else to the one that wrote it."""
    if asked.client.admin or asked.client.unchecked:
        return
    for one in documents:
        if isinstance(one.wish, Specification):
            paper = now.papers.get(one.paper(asked.environment).name)
            _guard_specification(asked, str(team), one.wish.type, paper, plan.before)


def _guard_specification(asked: HorizonRequest, team: str, event_type: str, paper: Paper | None, before: Environment) -> None:
    exposing = before.exposing(event_type)
    if exposing is not None:
        if not asked.client.acts_for(exposing[0]):
            raise Forbidden(f"the specification of {event_type} belongs to the team that exposes it, which is another one")
    elif paper is not None and paper.owner != team:
        raise Forbidden(f"the specification of {event_type} belongs to the team that wrote it, which is another one")


def _consequences(asked: HorizonRequest, before: Snapshot, after: Snapshot, results: list[dict[str, Any]]) -> dict[str, Any]:
    """What the change means beyond its documents."""
    told = {part.get("subscriptionId") for one in results for part in one["parts"]}
    changes = state_changes(before, after, asked.environment, told)
    warnings = []
    if is_new(before, asked.environment):
        others = environments_seen(before, asked.client, asked.parts.settings.horizon.environment)
        warnings.append(new_environment(asked.environment, others))
    return {"stateChanges": changes[:MOST], "moreStateChanges": max(0, len(changes) - MOST), "warnings": warnings}


async def _changed(
    asked: HorizonRequest, plan_of: Callable[[Snapshot], ApplyPlan], *, dry_run: bool
) -> tuple[ApplyPlan, Snapshot, Snapshot]:
    """Plan and do it; what stood before and what stands after. One at a time, since each would make the others plan anew."""
    async with asked.shelf.changing:
        return await _changed_alone(asked, plan_of, dry_run=dry_run)


async def _changed_alone(
    asked: HorizonRequest, plan_of: Callable[[Snapshot], ApplyPlan], *, dry_run: bool
) -> tuple[ApplyPlan, Snapshot, Snapshot]:
    """Made anew when somebody changed something past this door meanwhile."""
    parts = asked.parts
    for _ in range(TRIES):
        before = parts.snapshot
        plan = await asyncio.to_thread(plan_of, before)
        if dry_run:
            registry_changes.check_change(parts, plan.puts, plan.endings)
            wanted = plan_change(World(before), registry_changes.safe(parts, plan.puts), plan.endings, parts.clock.now())
            return plan, before, applied(before, wanted, before.revision)
        try:
            await registry_changes.change(parts, plan.puts, plan.endings, asked.client.id, partial(_same, before))
        except _Overtaken:
            continue
        return plan, before, parts.snapshot
    raise Conflict("others change this environment all the time; try again")


class _Overtaken(Exception):
    """Somebody else changed the registry after the plan was made."""


def _same(before: Snapshot, now: Snapshot) -> None:
    if now.revision != before.revision:
        raise _Overtaken


def _result(one: Given, paper: Paper | None, telling: Telling) -> dict[str, Any]:
    same = paper is not None and canonical(paper.text) == canonical(one.raw)
    return document_result(one, paper is not None, same, telling)


def _paper(asked: HorizonRequest, now: Snapshot, kind: str, name: str, team: str | None) -> Paper:
    """The document that a path names: a Rover by its own name or by its client id."""
    keys = [name]
    if kind == ROVER:
        keys = [team_for(asked.client, asked.parts.settings.horizon, team).client(name), name]
    for key in keys:
        paper = now.papers.get(paper_name(asked.environment, kind, key))
        if paper is not None and (asked.client.admin or asked.client.unchecked or _own(asked, paper, kind)):
            return paper
    raise NotFound(f"there is no {kind} {name}")


def _own(asked: HorizonRequest, paper: Paper, kind: str) -> bool:
    """Rovers and specifications are their team's, these also of who exposes the type; nobody learns of those of others."""
    if kind == ROVER:
        return asked.client.acts_for(paper.name.name)
    exposing = asked.shelf.standing(asked.parts.snapshot, asked.environment).exposing(str(paper.text["spec"].get("type")))
    return asked.client.acts_for(f"{paper.owner}--x") or (exposing is not None and asked.client.acts_for(exposing[0]))
