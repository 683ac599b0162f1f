"""The deliver process for tests that kill it: `python -m tests.delivery.deliver_process FOLDER`."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from tests.delivery.worlds import quick_settings
from tidings.delivery.push.run import run
from tidings.observe.board import Board


async def main(folder: Path) -> None:
    await run(quick_settings(folder, os.environ), asyncio.Event(), Board(folder / "run", "deliver"))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
