"""A domain: the document as it is kept and shown, and the topic that it comes to (VNG-40 to VNG-44)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidings.doors.vng.documents.members import DocumentReader, has_control
from tidings.doors.vng.names import DOMAINS, NAMESPACE, topic_for
from tidings.doors.vng.publish.event_rules import NAME_CHARACTERS
from tidings.errors import EventFault
from tidings.events.attribute_names import attribute_key
from tidings.registry.model import Name, Paper, Snapshot, Topic


def domain_papers(snapshot: Snapshot) -> dict[str, Paper]:
    """All domains by their names."""
    return {paper.text["name"]: paper for name, paper in snapshot.papers.items() if name.namespace == DOMAINS}


def topic_of(paper: Paper) -> Name:
    """The topic of a domain."""
    return Name(NAMESPACE, paper.text["topic"])


def domain_from(raw: Mapping[str, Any], uuid: str, standing: Paper | None, snapshot: Snapshot, owner: str) -> Paper:
    """The domain that a body describes. Raises InvalidDocument with everything that is wrong."""
    reader = DocumentReader(raw, [])
    name = reader.checked("name", _name_fault, required=True)
    link = reader.address("documentationLink")
    attributes = reader.texts("filterAttributes")
    _check_attributes(attributes, reader)
    if name:
        check_unique(name, uuid, snapshot, reader.faults)
        if standing is not None and standing.text["name"] != name:
            reader.fault("name", "invalid", "the name of a domain cannot be changed; its events and subscriptions go by it")
    reader.refuse()
    topic = topic_for(name, uuid, snapshot).name if standing is None else standing.text["topic"]
    text = {"name": name, "topic": topic, "documentationLink": link or None, "filterAttributes": attributes}
    return Paper(name=Name(DOMAINS, uuid), text=text, owner=owner if standing is None else standing.owner)


def check_unique(name: str, uuid: str, snapshot: Snapshot, faults: list[EventFault]) -> None:
    """Note it when another domain has this name (VNG-41)."""
    found = domain_papers(snapshot).get(name)
    if found is not None and found.name.name != uuid:
        faults.append(EventFault(0, "name", "unique", "there is a domain of this name already"))


def _name_fault(name: str) -> str | None:
    if name.startswith("~"):
        return "names that begin with ~ are the hub's own"
    return "a name has no control characters" if has_control(name) else None


def _check_attributes(names: list[str], reader: DocumentReader) -> None:
    seen: dict[str, str] = {}
    for n, name in enumerate(names):
        if len(name) > NAME_CHARACTERS:
            reader.fault(
                f"filterAttributes.{n}", "invalid", f"the name of an attribute has at most {NAME_CHARACTERS} characters"
            )
        key = attribute_key(name)
        other = seen.setdefault(key, name)
        if other != name:
            reader.fault(f"filterAttributes.{n}", "invalid", f"{other} is the same name in another letter case")


def topic_from(paper: Paper, duplicates: str, standing: Topic | None) -> Topic:
    """The topic of a domain. What operators changed of it stays."""
    if standing is not None:
        return standing
    return Topic(name=topic_of(paper), duplicates=duplicates, description=f"VNG domain {paper.text['name']}"[:4096])


def shown_domain(paper: Paper, address: str) -> dict[str, Any]:
    """The domain as it is answered; `address` is that of all domains."""
    uuid, text = paper.name.name, paper.text
    return {
        "url": f"{address}/{uuid}",
        "uuid": uuid,
        "name": text["name"],
        "documentationLink": text["documentationLink"],
        "filterAttributes": text["filterAttributes"],
    }
