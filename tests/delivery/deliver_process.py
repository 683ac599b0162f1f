"""The deliver process for tests that kill it: `python -m tests.delivery.deliver_process FOLDER`."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from tests.delivery.worlds import quick_settings
from tidings.adapters import deliver_adapters
from tidings.delivery.push.process import run
from tidings.observe.part_status import PartStatus


async def main(folder: Path) -> None:
    settings = quick_settings(folder, os.environ)
    await run(settings, asyncio.Event(), PartStatus(folder / "run", "deliver"), deliver_adapters(settings))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
