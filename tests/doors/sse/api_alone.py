"""The api part as a process of its own, to be killed: `python -m tests.doors.sse.api_alone FOLDER PORT`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tidings import config
from tidings.app import run_api
from tidings.observe.part_status import PartStatus


def main(folder: str, port: str) -> None:
    settings = config.load(environ={}, flags={"data": folder, "server": {"port": int(port)}})
    asyncio.run(run_api(settings, asyncio.Event(), PartStatus(Path(folder) / "run", "api")))


if __name__ == "__main__":
    main(*sys.argv[1:])
