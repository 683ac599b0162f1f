"""A reader as a process of its own, to be killed: `python -m tests.client.feeds.reader_process URL FILE [PAUSE]`.

It pauses between what the handler did and the commit, which is the worst moment to die in.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from tests.client.feeds.readers import SOON, Table
from tidings.client.feeds import Batch, SyncFeedClient


def main(url: str, file: str, pause: str = "0") -> None:
    table = Table(Path(file))

    def handle(tx: Any, batch: Batch) -> None:
        table.apply(tx, batch)
        print(len(batch), flush=True)
        time.sleep(float(pause))

    with SyncFeedClient(url, store=table.store, backoff=SOON, poll_interval=0.02, max_batch=5, page_size=20) as client:
        client.run(handle)


if __name__ == "__main__":
    main(*sys.argv[1:])
