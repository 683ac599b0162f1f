"""`/domains`: made, shown, and with `vng.domain_write` changed and deleted (VNG-36, VNG-40 to VNG-44)."""

from __future__ import annotations

from http import HTTPStatus

from tidings.access.principals import Right
from tidings.doors import registry_changes
from tidings.doors.requests.merge_patch import merged, unless_changed
from tidings.doors.vng.documents.domain import check_unique, domain_from, domain_papers, shown_domain, topic_from, topic_of
from tidings.doors.vng.names import DOMAINS, uuid_of
from tidings.doors.vng.resources.pages import cut, page_answer, page_of
from tidings.doors.vng.resources.request import VngAnswer, VngRequest
from tidings.errors import EventFault, InvalidDocument, NotFound
from tidings.ids import random_id
from tidings.registry.model import Name, Paper, Snapshot, Topic
from tidings.registry.port import DocumentEnd

WRITABLE = ("name", "documentationLink", "filterAttributes")


async def list_domains(request: VngRequest) -> VngAnswer:
    request.require_reader()
    snapshot, query = request.parts.snapshot, request.query
    page, wanted = page_of(query), query.get("name")
    found = [paper for name, paper in domain_papers(snapshot).items() if wanted is None or name == wanted]
    found.sort(key=lambda paper: snapshot.topics[topic_of(paper)].number)
    address = _address(request)
    kept = {"name": wanted} if wanted is not None else {}
    return page_answer(len(found), page, [shown_domain(one, address) for one in cut(found, page)], address, kept)


async def create_domain(request: VngRequest) -> VngAnswer:
    request.by.require(Right.PUBLISH)
    paper = domain_from(await request.document(), random_id(), None, request.parts.snapshot, request.by.name)
    request.by.require(Right.PUBLISH, topic_of(paper))
    topic = topic_from(paper, request.parts.settings.vng.duplicates, None)

    def still_unique(now: Snapshot) -> None:
        faults: list[EventFault] = []
        check_unique(paper.text["name"], paper.name.name, now, faults)
        if not faults and topic.name in now.topics:
            faults.append(EventFault(0, "name", "unique", "there is a domain of this name already"))
        if faults:
            raise InvalidDocument(faults)

    await registry_changes.put(request.parts, [topic, paper], request.by.name, still_unique)
    shown = shown_domain(paper, _address(request))
    return VngAnswer(HTTPStatus.CREATED, shown, shown["url"])


async def show_domain(request: VngRequest, uuid: str) -> VngAnswer:
    request.require_reader()
    return VngAnswer(HTTPStatus.OK, shown_domain(_found(request, uuid), _address(request)))


async def replace_domain(request: VngRequest, uuid: str) -> VngAnswer:
    request.by.require(Right.PUBLISH)
    standing = _found(request, uuid)
    return await _changed(request, standing, await request.document())


async def patch_domain(request: VngRequest, uuid: str) -> VngAnswer:
    request.by.require(Right.PUBLISH)
    standing = _found(request, uuid)
    known = {name: standing.text[name] for name in WRITABLE}
    return await _changed(request, standing, merged(known, await request.patch(), frozenset()))


async def _changed(request: VngRequest, standing: Paper, raw: dict[str, object]) -> VngAnswer:
    parts = request.parts
    request.by.require(Right.PUBLISH, topic_of(standing))
    paper = domain_from(raw, standing.name.name, standing, parts.snapshot, request.by.name)
    guard = unless_changed(lambda now: now.papers.get(standing.name), standing)
    await registry_changes.put(parts, [paper], request.by.name, guard)
    return VngAnswer(HTTPStatus.OK, shown_domain(paper, _address(request)))


async def delete_domain(request: VngRequest, uuid: str) -> VngAnswer:
    """Raises Conflict while subscriptions name the domain."""
    request.by.require(Right.PUBLISH)
    standing = _found(request, uuid)
    request.by.require(Right.PUBLISH, topic_of(standing))
    endings = [DocumentEnd(Topic, topic_of(standing)), DocumentEnd(Paper, standing.name)]
    await registry_changes.change(request.parts, (), endings, request.by.name)
    return VngAnswer(HTTPStatus.NO_CONTENT)


def _found(request: VngRequest, text: str) -> Paper:
    """Raises NotFound, for what is no UUID as well (VNG-34)."""
    uuid = uuid_of(text)
    paper = request.parts.snapshot.papers.get(Name(DOMAINS, uuid)) if uuid is not None else None
    if paper is None:
        raise NotFound("there is no domain of this UUID", found=text[:100])
    return paper


def _address(request: VngRequest) -> str:
    return f"{request.address}/domains"
