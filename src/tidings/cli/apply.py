"""`tidings apply`: changes the hub to match files and folders, or shows what would change.

Our own documents (topics, exposures, subscriptions) and Horizon's (Rover, EventSpecification) may stand side by side.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from tidings.cli.horizon import rovers
from tidings.cli.horizon.rovers import FileText
from tidings.cli.hub_command import Hub, command
from tidings.cli.terminal.output import print_json, print_warnings, say
from tidings.errors import Malformed, NotFound

SUFFIXES = (".yaml", ".yml", ".json")

_SIGNS = {"create": "+", "update": "~", "delete": "-"}
_COLORS = {"+": "32", "~": "33", "-": "31"}


def add_to(app: typer.Typer) -> None:
    """Register apply."""

    @command(app, "apply")
    def apply(
        hub: Hub,
        paths: Annotated[
            list[Path] | None, typer.Argument(help="YAML or JSON files, or folders of them; - reads stdin.")
        ] = None,
        files: Annotated[list[Path] | None, typer.Option("--file", "-f", help="Another file or folder.")] = None,
        environment: Annotated[
            str, typer.Option("--environment", "-e", help="Environment of Rover and EventSpecification documents.")
        ] = "default",
        team: Annotated[str | None, typer.Option("--team", help="Team of these documents, as hub--team.")] = None,
        dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")] = False,
        prune: Annotated[bool, typer.Option("--prune", help="Also delete what the file does not name.")] = False,
    ) -> None:
        """Change the hub to match files: all of a file, or nothing; all Rovers and EventSpecifications, or nothing."""
        texts = read_files([*(paths or ()), *(files or ())])
        theirs = [one for one in texts if rovers.are_documents(one)]
        ours = [read_document(one) for one in texts if one not in theirs]
        if theirs:
            rovers.apply(hub, theirs, rovers.RoverTarget(environment, team, dry_run))
        for document in ours:
            _apply(hub, {**document, "prune": True} if prune else document, dry_run)


def _apply(hub: Hub, wanted: dict[str, Any], dry_run: bool) -> None:
    applied = hub.client.post("/api/apply", wanted, {"dryRun": True} if dry_run else None)
    if hub.json:
        print_json(applied)
        return
    for line in difference(applied, colored=sys.stdout.isatty()):
        say(line)
    print_warnings(applied)
    for name, secret in (applied.get("secrets") or {}).items():
        say(f"deliveries to {name} are signed; check them with {secret} (shown only now)")


def read_files(paths: list[Path]) -> list[FileText]:
    """The texts of files, and of all YAML and JSON files in folders. Raises NotFound or Malformed with the place."""
    if not paths:
        raise Malformed("no file is named", expected="a file, a folder, or - for stdin")
    found: list[Path] = []
    for path in paths:
        inside = sorted(one for one in path.rglob("*") if one.suffix in SUFFIXES) if path.is_dir() else [path]
        if not inside:
            raise NotFound("the folder holds no YAML or JSON files", at=str(path))
        found += inside
    return [_read(one) for one in dict.fromkeys(found)]


def _read(file: Path) -> FileText:
    try:
        return FileText(file, sys.stdin.read() if str(file) == "-" else file.read_text("utf-8"))
    except OSError as error:
        raise NotFound(f"the file cannot be read: {error.strerror}", at=str(file)) from error
    except UnicodeDecodeError as error:
        raise Malformed("the file cannot be read: it is not UTF-8", at=str(file)) from error


def read_document(file: FileText) -> dict[str, Any]:
    """The document in a file, YAML or JSON. Raises Malformed with the place."""
    documents = rovers.documents_in(file)
    expected = "one object with topics, exposures or subscriptions, or documents with a kind"
    if not documents:
        raise Malformed("the file is empty", at=str(file.path), expected=expected)
    if len(documents) > 1:
        raise Malformed(f"the file holds {len(documents)} documents", at=str(file.path), expected=expected)
    document = documents[0]
    if not isinstance(document, dict):
        raise Malformed("the file holds no document", at=str(file.path), found=document, expected=expected)
    return document


def difference(applied: Any, *, colored: bool) -> list[str]:
    """What was or would be changed, like a diff: + new, - gone, ~ changed with the lines before and after."""
    lines: list[str] = []
    for step in applied["steps"]:
        sign = _SIGNS[step["action"]]
        lines.append(_painted(sign, f"{sign} {step['kind']} {step['name']}", colored))
        for member, (before, after) in (step.get("changes") or {}).items():
            lines.append(_painted("-", f"    - {member}: {_text(before)}", colored))
            lines.append(_painted("+", f"    + {member}: {_text(after)}", colored))
    count, verb = len(applied["steps"]), "would change" if applied["dryRun"] else "changed"
    return [*lines, f"{count or 'nothing'} {verb}, {applied['unchanged']} as they should be"]


def _painted(sign: str, text: str, colored: bool) -> str:
    return f"\x1b[{_COLORS[sign]}m{text}\x1b[0m" if colored else text


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
