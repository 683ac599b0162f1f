"""The api part as a process of its own, to be killed: `python -m tests.facades.sse.api_alone FOLDER PORT`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tidings import config
from tidings.app import run_api
from tidings.observe.board import Board


def main(folder: str, port: str) -> None:
    settings = config.load(environ={}, flags={"data": folder, "server": {"port": int(port)}})
    asyncio.run(run_api(settings, asyncio.Event(), Board(Path(folder) / "run", "api")))


if __name__ == "__main__":
    main(*sys.argv[1:])
