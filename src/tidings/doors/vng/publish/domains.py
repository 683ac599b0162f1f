"""The domains by their names, as publishing needs them: looked up once per revision of the registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import NamedTuple

from tidings.doors.vng.documents.domain import domain_papers, topic_of
from tidings.events.attribute_names import attribute_key
from tidings.ingest.admission import Admission
from tidings.ingest.intake import Intake
from tidings.registry.model import Paper, Snapshot


class AdmittedDomain(NamedTuple):
    """What a domain asks of its events. `allowed`: keys of the attributes that they may have beside the known ones; None: any."""

    admission: Admission
    allowed: Set[str] | None


class DomainLookup:
    """Finds domains. Belongs to one event loop."""

    def __init__(self, intake: Intake, current: Callable[[], Snapshot], undeclared_attributes: bool) -> None:
        self._intake = intake
        self._current = current
        self._undeclared = undeclared_attributes
        self._snapshot: Snapshot | None = None
        self._papers: Mapping[str, Paper] = {}
        self._found: dict[str, AdmittedDomain] = {}

    def of(self, name: str) -> AdmittedDomain | None:
        """The domain of this name; None when there is none."""
        snapshot = self._current()
        if snapshot is not self._snapshot:
            self._snapshot, self._papers, self._found = snapshot, domain_papers(snapshot), {}
        found = self._found.get(name)
        if found is None and name in self._papers:
            found = self._found[name] = self._admitted(self._papers[name])
        return found

    def _admitted(self, paper: Paper) -> AdmittedDomain:
        listed = paper.text["filterAttributes"]
        anything = self._undeclared and not listed
        allowed = None if anything else frozenset(attribute_key(name) for name in listed)
        return AdmittedDomain(self._intake.admission(topic_of(paper)), allowed)
