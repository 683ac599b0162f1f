"""Rover and EventSpecification files of `tidings apply`: sends them together as they are written, and prints the results."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tidings.cli.hub_command import Hub
from tidings.cli.terminal.input_text import json_in
from tidings.cli.terminal.output import print_json, say
from tidings.errors import HubProblem, Malformed

KINDS = ("Rover", "EventSpecification")
_SIGNS = {"created": "+", "updated": "~", "deleted": "-", "unchanged": " "}
_COLORS = {"+": "32", "~": "33", "-": "31"}


class FileText(NamedTuple):
    """A file and its text."""

    path: Path
    text: str


@dataclass(frozen=True, slots=True)
class RoverTarget:
    """Environment and team that the documents are for. `team` None: that of the token, or of the hub's settings."""

    environment: str
    team: str | None
    dry_run: bool


def are_documents(file: FileText) -> bool:
    """Whether a file holds documents of these kinds. Raises Malformed when it also holds others, or unknown kinds."""
    documents = documents_in(file)
    named = [one["kind"] for one in documents if isinstance(one, dict) and "kind" in one]
    unknown = next((kind for kind in named if kind not in KINDS), None)
    if unknown is not None:
        raise Malformed(
            "there is no such kind of document", at=f"{file.path}: kind", found=unknown, expected=" or ".join(KINDS)
        )
    kinds = [one.get("kind") in KINDS if isinstance(one, dict) else False for one in documents]
    if any(kinds) and not all(kinds):
        raise Malformed(f"the file holds other documents beside {' and '.join(KINDS)}", at=str(file.path))
    return any(kinds)


def documents_in(file: FileText) -> list[Any]:
    """The documents of a file, YAML or JSON. Raises Malformed with the place."""
    from tidings import yaml12

    if file.path.suffix == ".json":
        found = json_in(file.text, "the file", str(file.path))
        return found if isinstance(found, list) else [found]
    try:
        return yaml12.documents_in(file.text)
    except Malformed as error:
        place = ", ".join(filter(None, (str(file.path), error.at)))
        raise Malformed(f"the file cannot be read: {error.what}", at=place, expected=error.expected) from error


def apply(hub: Hub, files: list[FileText], target: RoverTarget) -> None:
    """Apply all documents of these files at once, or nothing."""
    owners = [label for file in files for label in _labels(file)]
    body = "\n---\n".join(file.text for file in files).encode()
    query = {"dryRun": True if target.dry_run else None, "team": target.team}
    path = f"/horizon/rover/v1/{target.environment}/apply"
    try:
        applied = hub.client.decoded("POST", path, body, content_type="application/yaml", query=query)
    except HubProblem as problem:
        raise _placed(problem, owners) from problem
    if hub.json:
        print_json(applied)
        return
    for line in told(applied, colored=sys.stdout.isatty()):
        say(line)


def _labels(file: FileText) -> list[str]:
    """A name for each document of a file: the file, with a number where it holds several."""
    many = len(documents_in(file))
    return [f"{file.path} (document {n})" if many > 1 else str(file.path) for n in range(1, many + 1)]


def _placed(problem: HubProblem, owners: list[str]) -> HubProblem:
    """The refusal with the file of each fault."""
    violations = [one for one in problem.problem.get("violations") or () if isinstance(one, dict)]
    faults = [{"attribute": _place(one, owners), "detail": one.get("reason")} for one in violations]
    sentence = f"{faults[0]['attribute']}: {faults[0]['detail']}" if faults else str(problem)
    return HubProblem(sentence, {**problem.problem, "errors": faults})


def _place(violation: dict[str, Any], owners: list[str]) -> str:
    number = violation.get("document", 0)
    file = f"{owners[number]}: " if isinstance(number, int) and number < len(owners) else ""
    return f"{file}{violation.get('path')}"


def told(applied: Any, *, colored: bool) -> list[str]:
    """Print what changed or would change: + new, - gone, ~ changed, ! warning."""
    lines: list[str] = []
    changed = 0
    for document in applied["results"]:
        name = document.get("clientId") or document["name"]
        lines.append(_line(document["result"], f"{document['kind']} {name}", colored))
        changed += document["result"] != "unchanged"
        for part in document["parts"]:
            state = f" {part['state']}" if "state" in part else ""
            reason = f": {part['reason']}" if part.get("reason") else ""
            what = f"{part['kind']} {part['eventType']} {part.get('subscriptionId', '')}".rstrip()
            lines.append("  " + _line(part["result"], f"{what}{state}{reason}", colored))
            lines += [f"      stream: {part['sseUrl']}"] if "sseUrl" in part else []
            lines += [f"      ! {warning}" for warning in part.get("warnings") or ()]
        lines += [f"    ! {warning}" for warning in document["warnings"]]
    lines += _consequences(applied)
    verb = "would change" if applied["dryRun"] else "changed"
    return [*lines, f"{changed or 'nothing'} {verb}, {len(applied['results']) - changed} as they should be"]


def _consequences(applied: Any) -> list[str]:
    """What happens beyond the documents: subscriptions of others that change their state, and warnings."""
    verb = "would become" if applied["dryRun"] else "becomes"
    lines = []
    for one in applied.get("stateChanges") or ():
        reason = f": {one['reason']}" if one.get("reason") else ""
        sign = "~" if one["state"] == "ACTIVE" else "!"
        lines.append(f"{sign} subscription of {one['subscriberId']} to {one['eventType']} {verb} {one['state']}{reason}")
    if applied.get("moreStateChanges"):
        lines.append(f"! and {applied['moreStateChanges']} more subscriptions change their state")
    return lines + [f"! {warning}" for warning in applied.get("warnings") or ()]


def _line(result: str, text: str, colored: bool) -> str:
    sign = _SIGNS[result]
    line = f"{sign} {text}"
    return f"\x1b[{_COLORS[sign]}m{line}\x1b[0m" if colored and sign in _COLORS else line
