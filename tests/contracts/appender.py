"""A process that appends from many coroutines until it is killed, and prints every acknowledged position with its head."""

from __future__ import annotations

import asyncio
import importlib
import itertools
import os
import sys
from pathlib import Path

from tests.builders import a_draft
from tidings.log.port import LogWriter


async def publish(writer: LogWriter, name: int) -> None:
    for number in itertools.count():
        heads = [b"%d:%d:%d" % (name, number, part) for part in range(3)]
        positions = await writer.append([a_draft(head=head, data=head * 20) for head in heads])
        lines = [b"%d %d %s\n" % (*position, head) for position, head in zip(positions, heads, strict=True)]
        os.write(1, b"".join(lines))


async def main(opener: str, folder: Path) -> None:
    module, _, name = opener.partition(":")
    writer = getattr(importlib.import_module(module), name)(folder)
    await asyncio.gather(*(publish(writer, name) for name in range(8)))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
