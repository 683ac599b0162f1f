"""Declarative changes: `POST /api/apply` brings topics, exposures and subscriptions to what a document says.

All or nothing, in one revision. Nothing is ever deleted unless `prune` asks for it, and then only kinds the document speaks of.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BeforeValidator, Field

from tidings.access.principals import Principal, Right
from tidings.doors import handshakes, registry_changes
from tidings.doors.advice import advice_on
from tidings.doors.api_parts import ApiParts
from tidings.doors.door import Door
from tidings.doors.native.apply.document_changes import DocumentChanges, document_changes
from tidings.doors.native.bodies.subscription import SubscriptionBody
from tidings.doors.native.bodies.wire import Wire
from tidings.doors.native.callers import Caller, PartsOf, owns, refuse_foreign
from tidings.doors.native.delivery.webhooks import policy_in
from tidings.doors.native.door_documents import is_derived, refuse_derived
from tidings.doors.native.exposures import ExposureBody, exposure_from
from tidings.doors.native.subscriptions import begun, secret_in, wanted_by
from tidings.doors.native.topics import TopicBody, topic_from
from tidings.errors import Malformed
from tidings.registry.model import HUB_NAMESPACE, Exposure, Name, Snapshot, Subscription, Topic
from tidings.registry.port import Document, DocumentEnd
from tidings.registry.rules import parse_name

router = APIRouter(tags=["operating"])


def _named(key: str) -> Any:
    """Lets a list also be written as an object of names: `{"orders": {…}}` as `[{"name": "orders", …}]`."""

    def listed(given: Any) -> Any:
        if isinstance(given, dict):
            return [
                {key: name, **(body or {})} if isinstance(body, (dict, type(None))) else body for name, body in given.items()
            ]
        return given

    return BeforeValidator(listed)


class HubDocument(Wire):
    """What the hub should hold. A kind that is left out is left alone."""

    topics: Annotated[list[TopicBody], _named("name")] | None = None
    exposures: Annotated[list[ExposureBody], _named("topic")] | None = None
    subscriptions: Annotated[list[SubscriptionBody], _named("name")] | None = None
    prune: bool = Field(default=False, description="Also delete what the document does not name, of the kinds it speaks of.")


class AppliedStep(Wire):
    """One thing that changes. `changes` shows each member that differs, as [before, after]."""

    action: Literal["create", "update", "delete"]
    kind: str
    name: str
    changes: dict[str, tuple[Any, Any]] | None = None


class ApplyResult(Wire):
    """What was changed, or would be."""

    dry_run: bool
    steps: list[AppliedStep]
    unchanged: int
    revision: int
    secrets: dict[str, str] | None = Field(
        default=None, description="Signing secrets that were made, by subscription; shown once."
    )
    warnings: list[str] | None = Field(
        default=None, description="What in the changed documents may not be meant as it is written."
    )


@router.post("/api/apply")
async def apply(
    body: HubDocument, parts: PartsOf, caller: Caller, dry_run: bool = Query(False, alias="dryRun", description="Only show it.")
) -> ApplyResult:
    """Bring the hub to what the document says."""
    given = await _begun(parts, body, _documents(body, parts.snapshot, caller))
    registry_changes.check_documents(parts, given)
    if not dry_run:
        given = await _shaken(parts, body, given)
    wanted = registry_changes.safe(parts, given)
    found = document_changes(parts.snapshot, wanted, _pruned(parts, body, wanted, caller))
    refuse_derived(parts.doors, found.puts, found.endings)
    if not dry_run and (found.puts or found.endings):
        await registry_changes.change(parts, found.puts, found.endings, caller.name, lambda now: _guard(caller, found, now))
    elif dry_run:
        registry_changes.check_change(parts, found.puts, found.endings)
    steps = [AppliedStep(action=s.action, kind=s.kind, name=s.name, changes=s.changes) for s in found.steps]
    made = {} if dry_run else _secrets(given)
    return ApplyResult(
        dry_run=dry_run,
        steps=steps,
        unchanged=found.unchanged,
        revision=parts.snapshot.revision,
        secrets=made or None,
        warnings=_warnings(parts, found.puts) or None,
    )


def _warnings(parts: ApiParts, documents: Iterable[Document]) -> list[str]:
    return [f"{_told(one)}: {sentence}" for one in documents for sentence in _advice(parts, one)]


def _advice(parts: ApiParts, document: Document) -> list[str]:
    unreachable = handshakes.warnings_about(parts, document) if isinstance(document, Subscription) else []
    return [*unreachable, *advice_on(document, parts.regex)]


def _told(document: Document) -> str:
    match document:
        case Exposure(topic=topic):
            return f"exposure {topic}"
        case Subscription(name=name):
            return f"subscription {name}"
    return type(document).__name__.lower()


async def _begun(parts: ApiParts, body: HubDocument, given: list[Document]) -> list[Document]:
    """The documents, with the starts of those subscriptions that are made now."""
    starts, standing = (
        {parse_name(one.name): one.start for one in body.subscriptions or () if one.name},
        parts.snapshot.subscriptions,
    )
    return [
        await begun(parts, one, starts[one.name], standing.get(one.name)) if isinstance(one, Subscription) else one
        for one in given
    ]


async def _shaken(parts: ApiParts, body: HubDocument, given: list[Document]) -> list[Document]:
    """The documents, once every new callback that is to be asked has consented."""
    asked = {parse_name(one.name): policy_in(one.handshake) for one in body.subscriptions or () if one.name is not None}
    return [await handshakes.shaken(parts, one, asked[one.name]) if isinstance(one, Subscription) else one for one in given]


def _secrets(given: list[Document]) -> dict[str, str]:
    subscriptions = [one for one in given if isinstance(one, Subscription)]
    return {str(one.name): secret for one in subscriptions if (secret := secret_in(one)) is not None}


def _guard(caller: Principal, found: DocumentChanges, now: Snapshot) -> None:
    names = [document.name for document in found.puts if isinstance(document, Subscription)]
    names += [ending.name for ending in found.endings if ending.kind is Subscription]
    for name in names:
        refuse_foreign(caller, name, now)


def _documents(body: HubDocument, snapshot: Snapshot, caller: Principal) -> list[Document]:
    if body.topics or body.exposures:
        caller.require(Right.ADMIN)
    topics = [topic_from(_name(topic.name, "topics", n), topic) for n, topic in enumerate(body.topics or ())]
    exposures = [exposure_from(_name(one.topic, "exposures", n), one) for n, one in enumerate(body.exposures or ())]
    subscriptions = []
    for n, one in enumerate(body.subscriptions or ()):
        name = _name(one.name, "subscriptions", n)
        refuse_foreign(caller, name, snapshot)
        subscriptions.append(wanted_by(caller, name, one, snapshot.subscriptions.get(name)))
    return [*topics, *exposures, *subscriptions]


def _name(given: str | None, kind: str, index: int) -> Name:
    if given is None:
        raise Malformed("a name is missing", at=f"{kind}[{index}]")
    return parse_name(given)


def _pruned(parts: ApiParts, body: HubDocument, wanted: list[Document], caller: Principal) -> list[DocumentEnd]:
    """What is in force and not in the document."""
    snapshot, doors = parts.snapshot, parts.doors
    if not body.prune:
        return []
    if body.topics is not None or body.exposures is not None:
        caller.require(Right.ADMIN)
    named = {(type(one), one.topic if isinstance(one, Exposure) else one.name) for one in wanted if isinstance(one, _KINDS)}
    endings: list[DocumentEnd] = []
    if body.subscriptions is not None:
        mine = [name for name, one in snapshot.subscriptions.items() if owns(caller, one) and not is_derived(doors, name)]
        endings += [DocumentEnd(Subscription, name) for name in mine if (Subscription, name) not in named]
    if body.topics is not None:
        endings += [DocumentEnd(Topic, name) for name in _theirs(doors, snapshot.topics) if (Topic, name) not in named]
    gone = {ending.name for ending in endings if ending.kind is Topic}
    if body.exposures is not None:
        # An exposure ends with its topic.
        exposed = [name for name in _theirs(doors, snapshot.exposures) if name not in gone]
        endings += [DocumentEnd(Exposure, name) for name in exposed if (Exposure, name) not in named]
    return endings


def _theirs(doors: Sequence[Door], names: Iterable[Name]) -> list[Name]:
    """Those that are neither the hub's own nor follow from another door's documents."""
    return [name for name in names if name.namespace != HUB_NAMESPACE and not is_derived(doors, name)]


_KINDS = (Topic, Exposure, Subscription)
