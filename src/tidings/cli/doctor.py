"""`tidings doctor`: says what is wrong and what to do."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from tidings.cli.hub_command import Hub, command
from tidings.cli.serve import Config, Data, Port, settings_of
from tidings.cli.terminal.output import print_json, print_table, say
from tidings.serve.exit_codes import DONE, FAILED

_SIGNS = {"ok": "✓", "doubtful": "?", "wrong": "✗"}


def add_to(app: typer.Typer) -> None:
    """Register doctor."""

    @command(app, "doctor", rich_help_panel="Operating")
    def doctor(
        hub: Hub,
        data: Data = None,
        port: Port = None,
        config: Config = None,
        deep: Annotated[bool, typer.Option("--deep", help="Also read every data file from end to end.")] = False,
    ) -> int:
        """Check Java, memory, disk, port, clock, settings and data files, and say what to do. Exit code 1: something is wrong."""
        from tidings.doctor import machine, sqlite
        from tidings.doctor.finding import DoctorVerdict

        settings = settings_of(data=data, port=port, config=config)
        findings = [*machine.look(settings, _answers(settings.server.port)), *sqlite.look(settings.data, deep=deep)]
        wrong = [finding for finding in findings if finding.verdict is DoctorVerdict.WRONG]
        if hub.json:
            print_json({"healthy": not wrong, "findings": [asdict(finding) for finding in findings]})
        else:
            print_table(
                ("", "looked at", "found", "what to do"),
                [(_SIGNS[finding.verdict], finding.subject, finding.found, finding.remedy) for finding in findings],
                empty="",
            )
            say(f"{len(wrong)} to mend before a hub can run" if wrong else "nothing stands in the way of a hub")
        return FAILED if wrong else DONE


def _answers(port: int) -> bool:
    """Whether a hub answers on this machine's port."""
    from tidings.client.http import HubClient
    from tidings.errors import HubProblem, HubUnreachable

    try:
        HubClient(f"http://127.0.0.1:{port}", timeout=3).send("GET", "/health/live")
    except (HubProblem, HubUnreachable):
        return False
    return True
