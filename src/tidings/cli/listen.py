"""`tidings listen`: a callback that prints what arrives."""

from __future__ import annotations

import json
import sys
import threading
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.cli.command import Hub, command
from tidings.cli.show import print_json, say

if TYPE_CHECKING:
    from tidings.cli.receiver import Arrival


def add_to(app: typer.Typer) -> None:
    """Register listen."""

    @command(app, "listen")
    def listen(
        hub: Hub,
        port: Annotated[int, typer.Option("--port", help="Port to listen on; 0 chooses a free one.")] = 9000,
        host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
        answer: Annotated[int, typer.Option("--answer", help="Status to answer with, such as 503 to watch retries.")] = 204,
        count: Annotated[int | None, typer.Option("--count", help="Stop after so many requests.")] = None,
    ) -> None:
        """Receive deliveries and print them: a callback to try things with."""
        from tidings.cli.receiver import Receiver

        enough = threading.Event()
        seen = 0

        def take(arrival: Arrival) -> None:
            nonlocal seen
            print_json(_document(arrival)) if hub.json else say(_line(arrival))
            seen += 1
            if count is not None and seen >= count:
                enough.set()

        receiver = Receiver(take, host, port, answer).start()
        print(f"listening on {receiver.url}, Ctrl-C stops", file=sys.stderr, flush=True)
        enough.wait()
        receiver.close()


def _document(arrival: Arrival) -> dict[str, object]:
    return {"path": arrival.path, "headers": arrival.headers, "event": arrival.event()}


def _line(arrival: Arrival) -> str:
    event = arrival.event()
    what = f"{event.get('type', arrival.method)} {event.get('id', '')}".strip()
    data = json.dumps(event.get("data"), ensure_ascii=False)
    return f"{datetime.now():%H:%M:%S.%f}"[:-3] + f"  {arrival.path}  {what}  {data}"
