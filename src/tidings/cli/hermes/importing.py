"""`tidings hermes import`: takes groups, topics, subscriptions and OAuth providers over from Hermes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, NamedTuple
from urllib.parse import quote

import typer

from tidings.cli.hermes.source import HermesDocuments, documents_at
from tidings.cli.hub_command import Hub, command
from tidings.cli.terminal.output import print_json, say
from tidings.client.http import HubClient
from tidings.errors import HubProblem

PREFIX = "/hermes"
SHOWN_BY_HERMES = ("createdAt", "modifiedAt", "state", "trackingEnabled")

EFFECTLESS: Mapping[str, tuple[str, ...]] = {
    "group": ("supportTeam", "technicalOwner", "contact"),
    "provider": (),
    "topic": (
        *("labels", "chaos", "offlineStorage", "subscribingRestricted", "migratedFromJsonType", "jsonToAvroDryRun"),
        *("fallbackToRemoteDatacenterEnabled", "schemaIdAwareSerializationEnabled", "trackingEnabled"),
    ),
    "subscription": ("endpointAddressResolverMetadata", "monitoringDetails", "http2Enabled", "profilingEnabled"),
}
"""Members that are stored and shown, and do nothing here."""


class ImportStep(NamedTuple):
    """One document, and where it goes."""

    kind: str
    name: str
    create: str
    place: str
    document: dict[str, Any]

    @property
    def effectless(self) -> list[str]:
        """Members that were set and do nothing here."""
        given = self.document
        return [name for name in EFFECTLESS[self.kind] if given.get(name) not in (None, False, "", [], {}, _NO_MONITORING)]


_NO_MONITORING = {"severity": "NON_IMPORTANT", "reaction": ""}


class ImportResult(NamedTuple):
    """What became of a document: create, update, same, or why it was refused."""

    step: ImportStep
    outcome: str
    reason: str = ""

    def as_json(self) -> dict[str, Any]:
        told = {"kind": self.step.kind, "name": self.step.name, "outcome": self.outcome, "withoutEffect": self.step.effectless}
        return {**told, **({"reason": self.reason} if self.reason else {})}

    def line(self) -> str:
        """The same for people."""
        told = f"{_SIGNS[self.outcome]} {self.step.kind} {self.step.name}"
        if self.reason:
            told += f": {self.reason}"
        names = self.step.effectless
        return f"{told}\n    stored, without effect: {', '.join(names)}" if names else told


_SIGNS = {"create": "+", "update": "~", "same": "=", "refused": "!"}


def steps_of(documents: HermesDocuments) -> Iterator[ImportStep]:
    """The documents in the order in which one needs the other."""
    for one in documents.groups:
        name = str(one.get("groupName", ""))
        yield ImportStep("group", name, "/groups", f"/groups/{_segment(name)}", one)
    for one in documents.oauthProviders:
        name = str(one.get("name", ""))
        yield ImportStep("provider", name, "/oauth/providers", f"/oauth/providers/{_segment(name)}", one)
    for one in documents.topics:
        name = str(one.get("name", ""))
        yield ImportStep("topic", name, "/topics", f"/topics/{_segment(name)}", one)
    for one in documents.subscriptions:
        topic, name = str(one.get("topicName", "")), str(one.get("name", ""))
        below = f"/topics/{_segment(topic)}/subscriptions"
        yield ImportStep("subscription", f"{topic}${name}", below, f"{below}/{_segment(name)}", one)


def _segment(name: str) -> str:
    return quote(name, safe="")


def add_to(app: typer.Typer) -> None:
    """Register the commands of this group."""
    hermes = typer.Typer(help="For those who come from Hermes.", no_args_is_help=True)
    app.add_typer(hermes, name="hermes")

    @command(hermes, "import")
    def import_documents(
        hub: Hub,
        source: Annotated[str, typer.Argument(help="A JSON file, or the address of a running Hermes management.")],
        dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    ) -> int:
        """Take over groups, topics, subscriptions and OAuth providers. Hermes tells no secrets: put them into a file."""
        results = [_done(hub.client, step, dry_run=dry_run) for step in steps_of(documents_at(source))]
        if hub.json:
            print_json({"dryRun": dry_run, "results": [one.as_json() for one in results]})
        else:
            for one in results:
                say(one.line())
            say(_summary(results, dry_run=dry_run))
        return 1 if any(one.outcome == "refused" for one in results) else 0


def _done(client: HubClient, step: ImportStep, *, dry_run: bool) -> ImportResult:
    """Create what is not there, change what differs; a document that is refused keeps no other from coming."""
    try:
        standing = _standing(client, step)
        if standing is not None and _says(standing, step.document):
            return ImportResult(step, "same")
        if not dry_run:
            _send(client, step, new=standing is None)
        return ImportResult(step, "create" if standing is None else "update")
    except HubProblem as error:
        return ImportResult(step, "refused", str(error.problem.get("message") or error))


def _standing(client: HubClient, step: ImportStep) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = client.get(PREFIX + step.place)
    except HubProblem as error:
        if str(error.problem.get("code", "")).endswith("_NOT_EXISTS"):
            return None
        raise
    return found


def _says(standing: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether everything that is wanted stands there; what the hub does not keep does not count."""
    state = wanted.get("state") in (None, "PENDING") or wanted.get("state") == standing.get("state", wanted.get("state"))
    kept = {name: value for name, value in wanted.items() if name not in SHOWN_BY_HERMES and value is not None}
    return state and all(_same(standing[name], value) for name, value in kept.items() if name in standing)


def _same(standing: Any, wanted: Any) -> bool:
    if isinstance(standing, dict) and isinstance(wanted, dict):
        return all(_same(standing[name], value) for name, value in wanted.items() if name in standing)
    return bool(standing == wanted)


def _send(client: HubClient, step: ImportStep, *, new: bool) -> None:
    body = json.dumps(step.document).encode()
    client.send("POST" if new else "PUT", PREFIX + (step.create if new else step.place), body)
    state = step.document.get("state")
    if step.kind == "subscription" and state in ("ACTIVE", "SUSPENDED") and not (new and state == "ACTIVE"):
        client.send("PUT", f"{PREFIX}{step.place}/state", json.dumps(state).encode())


def _summary(results: list[ImportResult], *, dry_run: bool) -> str:
    counts = {word: sum(one.outcome == word for one in results) for word in _SIGNS}
    would = "would be " if dry_run else ""
    told = f"{counts['create']} {would}created, {counts['update']} {would}changed, {counts['same']} stand already"
    return f"{told}, {counts['refused']} refused" if counts["refused"] else told
