"""`tidings apply`: brings the hub to what a file says, or shows what would change."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from tidings.cli.command import Hub, command
from tidings.cli.show import print_json, say
from tidings.errors import Malformed, NotFound

_SIGNS = {"create": "+", "update": "~", "delete": "-"}
_COLORS = {"+": "32", "~": "33", "-": "31"}


def add_to(app: typer.Typer) -> None:
    """Register apply."""

    @command(app, "apply")
    def apply(
        hub: Hub,
        file: Annotated[Path, typer.Argument(help="YAML or JSON with topics, exposures and subscriptions; - reads stdin.")],
        dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")] = False,
        prune: Annotated[bool, typer.Option("--prune", help="Also delete what the file does not name.")] = False,
    ) -> None:
        """Bring topics, exposures and subscriptions to what a file says: all of it, or nothing."""
        document = read_document(file)
        wanted = {**document, "prune": True} if prune else document
        applied = hub.client.post("/api/apply", wanted, {"dryRun": True} if dry_run else None)
        if hub.json:
            print_json(applied)
        else:
            for line in difference(applied, colored=sys.stdout.isatty()):
                say(line)
            for name, secret in (applied.get("secrets") or {}).items():
                say(f"deliveries to {name} are signed; check them with {secret} (shown only now)")


def read_document(file: Path) -> dict[str, Any]:
    """The document in a file, YAML or JSON. Raises NotFound or Malformed with the place."""
    import yaml

    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text("utf-8")
        document = json.loads(text) if file.suffix == ".json" else yaml.safe_load(text)
    except OSError as error:
        raise NotFound(f"the file cannot be read: {error.strerror}", at=str(file)) from error
    except (ValueError, yaml.YAMLError) as error:
        raise Malformed(f"the file cannot be read: {' '.join(str(error).split())}", at=str(file)) from error
    if not isinstance(document, dict):
        raise Malformed("the file holds no document", at=str(file), found=document, expected="topics, exposures, subscriptions")
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
