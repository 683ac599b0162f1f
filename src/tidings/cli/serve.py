"""`tidings serve`, and its three parts as commands of their own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidings.cli.hub_command import Hub, with_exit_code

if TYPE_CHECKING:
    from tidings.config import Settings

Data = Annotated[Path | None, typer.Option("--data", help="Folder that holds everything; ./tidings-data unless set.")]
Port = Annotated[
    int | None, typer.Option("--port", min=0, max=65535, help="Port to listen on; 8484 unless set, 0 chooses a free one.")
]
Host = Annotated[str | None, typer.Option("--host", help="Address to listen on; loopback unless set.")]
Config = Annotated[Path | None, typer.Option("--config", help="Settings file (TOML); otherwise TIDINGS_CONFIG.")]
LogFormat = Annotated[
    str | None, typer.Option("--log-format", help="Form of log lines: text, json or auto (text on a terminal).")
]
Lifeline = Annotated[int | None, typer.Option("--lifeline", hidden=True)]
Sockets = Annotated[str, typer.Option("--sockets", hidden=True)]


def add_to(app: typer.Typer) -> None:
    """Register serve, api, pipeline and deliver."""

    @app.command("serve")
    def serve(
        data: Data = None,
        port: Port = None,
        host: Host = None,
        config: Config = None,
        log_format: LogFormat = None,
        lifeline: Lifeline = None,
    ) -> None:
        """Run a whole hub on this machine until Ctrl-C or SIGTERM."""

        def act() -> int:
            from tidings.serve.hub import serve as run_hub

            return run_hub(settings_of(data, port, host, config, log_format), config_file(config), lifeline)

        with_exit_code(Hub(), act)

    for part, does in {
        "api": "takes requests and keeps the log and the registry",
        "pipeline": "routes events into lanes on Spark",
        "deliver": "pushes what is in the lanes to callbacks",
    }.items():
        body = _deliver if part == "deliver" else _part_command(part)
        app.command(part, help=f"Run only the part that {does}.", rich_help_panel="Single parts")(body)


def _part_command(part: str) -> Any:
    def run(
        data: Data = None,
        port: Port = None,
        host: Host = None,
        config: Config = None,
        log_format: LogFormat = None,
        lifeline: Lifeline = None,
        sockets: Sockets = "",
    ) -> None:
        def act() -> int:
            from tidings.serve.part_commands import run_part

            given = [int(number) for number in sockets.split(",") if number]
            return run_part(part, settings_of(data, port, host, config, log_format), lifeline, given)

        with_exit_code(Hub(), act)

    return run


def _deliver(
    data: Data = None,
    port: Port = None,
    host: Host = None,
    config: Config = None,
    log_format: LogFormat = None,
    lifeline: Lifeline = None,
    worker: Annotated[
        int, typer.Option(help="Number of the deliver worker to run, from 0 to deliver.workers - 1.", min=0, max=15)
    ] = 0,
) -> None:
    part = f"deliver-{worker}" if worker else "deliver"
    _part_command(part)(data, port, host, config, log_format, lifeline)


def settings_of(
    data: Path | None = None,
    port: int | None = None,
    host: str | None = None,
    config: Path | None = None,
    log_format: str | None = None,
) -> Settings:
    """The settings of this start; flags override the rest. Raises Misconfigured."""
    from tidings.config import load

    given: dict[str, dict[str, object]] = {"server": {"port": port, "host": host}, "observe": {"log_format": log_format}}
    flags: dict[str, Any] = {
        section: {key: value for key, value in keys.items() if value is not None} for section, keys in given.items()
    }
    if data is not None:
        flags["data"] = str(data)
    return load(config_file(config), flags=flags)


def config_file(config: Path | None) -> Path | None:
    """The settings file, by flag or by TIDINGS_CONFIG."""
    named = os.environ.get("TIDINGS_CONFIG")
    return config or (Path(named) if named else None)
