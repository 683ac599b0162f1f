"""`tidings listen`: a callback that prints what arrives, checks its signature, and answers by a script."""

from __future__ import annotations

import json
import sys
import threading
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from tidings import config
from tidings.cli.horizon.tokens import TokenCheck
from tidings.cli.hub_command import Hub, command
from tidings.cli.terminal.output import print_json, say
from tidings.client.webhooks import NotVerified, verify
from tidings.errors import Rejected

if TYPE_CHECKING:
    from tidings.cli.receiver import ReceivedRequest, Script

NOT_SIGNED = "not signed"


def add_to(app: typer.Typer) -> None:
    """Register listen."""

    @command(app, "listen")
    def listen(
        hub: Hub,
        port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port to listen on; 0 chooses a free one.")] = 9000,
        host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
        answer: Annotated[
            str, typer.Option("--answer", help="Statuses to answer with, in turn; the last one repeats: 503,503,200.")
        ] = "204",
        retry_after: Annotated[
            str | None, typer.Option("--retry-after", help="Retry-After of answers other than 2xx: seconds or a date.")
        ] = None,
        delay: Annotated[str, typer.Option("--delay", help="Wait before each answer, such as 1s or 200ms.")] = "0s",
        secret: Annotated[
            list[str] | None, typer.Option("--secret", help="Key to check signatures with, whsec_… or whpk_….")
        ] = None,
        subscriber: Annotated[
            str | None,
            typer.Option("--horizon", help="Check the hub's token in Horizon callbacks: the subscriber's client id."),
        ] = None,
        publisher: Annotated[
            list[str] | None, typer.Option("--publisher", help="With --horizon: client id of a trusted provider.")
        ] = None,
        environment: Annotated[
            str | None,
            typer.Option("--environment", help="With --horizon: the environment, if the issuer of tokens depends on it."),
        ] = None,
        headers: Annotated[bool, typer.Option("--headers", help="Print the headers too.")] = False,
        count: Annotated[int | None, typer.Option("--count", help="Stop after this many requests.")] = None,
    ) -> None:
        """Run a callback that prints the deliveries it receives."""
        from tidings.cli.receiver import Receiver

        enough = threading.Event()
        seen = 0
        check = None if subscriber is None else TokenCheck(hub, subscriber, publisher or [], environment)

        def take(arrival: ReceivedRequest) -> None:
            nonlocal seen
            verdict = verdict_on(arrival, secret or []) if check is None else check.verdict(arrival.headers)
            print_json(_document(arrival, verdict)) if hub.json else say(_text(arrival, verdict, headers))
            seen += 1
            if count is not None and seen >= count:
                enough.set()

        receiver = Receiver(take, host, port, script_of(answer, retry_after, delay)).start()
        print(f"listening on {receiver.url}, Ctrl-C stops", file=sys.stderr, flush=True)
        enough.wait()
        receiver.close()


def script_of(answer: str, retry_after: str | None, delay: str) -> Script:
    """How to answer, from the options. Raises Rejected."""
    from tidings.cli.receiver import Script

    words = [word.strip() for word in answer.split(",")]
    if not all(word.isascii() and word.isdigit() and 200 <= int(word) <= 599 for word in words):
        raise Rejected("these are no statuses", at="--answer", found=answer, expected="such as 503,503,200")
    try:
        wait = config.seconds(delay)
    except ValueError as error:
        raise Rejected("this is no time", at="--delay", found=delay, expected="such as 1s or 200ms") from error
    return Script(tuple(map(int, words)), retry_after or "", wait)


def verdict_on(arrival: ReceivedRequest, keys: list[str]) -> str | None:
    """Whether the request is signed with one of the keys; None when there is no key to check with."""
    if not keys:
        return None
    if "webhook-signature" not in arrival.headers:
        return NOT_SIGNED
    try:
        verify(arrival.body, arrival.headers, keys)
    except NotVerified as error:
        return f"signature wrong: {error}"
    return "signature right"


def _document(arrival: ReceivedRequest, verdict: str | None) -> dict[str, object]:
    document: dict[str, object] = {"path": arrival.path, "headers": arrival.headers, "event": arrival.event()}
    return document if verdict is None else {**document, "signature": verdict}


def _text(arrival: ReceivedRequest, verdict: str | None, headers: bool) -> str:
    shown = [f"    {name}: {value}" for name, value in arrival.headers.items()] if headers else []
    return "\n".join([_line(arrival) + (f"  [{verdict}]" if verdict else ""), *shown])


def _line(arrival: ReceivedRequest) -> str:
    event = arrival.event()
    what = f"{event.get('type', arrival.method)} {event.get('id', '')}".strip()
    refers = event.get("data") is None and "dataref" in event
    data = f"dataref: {event['dataref']}" if refers else json.dumps(event.get("data"), ensure_ascii=False)
    return f"{datetime.now():%H:%M:%S.%f}"[:-3] + f"  {arrival.path}  {what}  {data}"
