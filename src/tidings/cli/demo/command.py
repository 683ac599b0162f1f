"""The command `tidings demo`."""

from __future__ import annotations

from typing import Annotated

import typer

from tidings.cli.hub_command import Hub, with_exit_code
from tidings.cli.serve import Config, Data, Port, config_file, settings_of


def add_to(app: typer.Typer) -> None:
    """Register demo."""

    @app.command("demo")
    def demo(
        data: Data = None,
        port: Port = None,
        config: Config = None,
        seconds: Annotated[float | None, typer.Option("--for", help="Stop after this many seconds.")] = None,
    ) -> None:
        """Start a hub with publishers and subscribers to watch; Ctrl-C stops everything."""

        def act() -> int:
            from tidings.cli.demo.run import run

            return run(settings_of(data=data, port=port, config=config), config_file(config), seconds)

        with_exit_code(Hub(), act)
