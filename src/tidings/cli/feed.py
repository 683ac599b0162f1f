"""`tidings feed …`: reading and forwarding feeds of any server; partitions and kept cursors of this hub's own."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote, urlsplit

import typer

from tidings.cli.hub_command import Hub, command
from tidings.cli.terminal.output import print_json, print_table, say
from tidings.errors import Rejected

if TYPE_CHECKING:
    from tidings.client.feeds import FeedClient, Store

_WAIT = 20
_PAGE = 1000

feeds = typer.Typer(help="Feeds: events fetched with a cursor (ZeroEventHub, FeedAPI).", no_args_is_help=True)

Address = Annotated[str, typer.Argument(metavar="FEED", help="Address of a feed, or a topic of the hub.")]
Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="Name of a topic, or ~SUBSCRIPTION.")]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Wait for more events.")]
Start = Annotated[
    str | None,
    typer.Option("--from", help="Where to begin when no cursor is kept yet: _first (the default), _last or a cursor."),
]
Name = Annotated[
    str | None, typer.Option("--name", help="Keep cursors in --state under this name, not under the address of the feed.")
]
State = Annotated[Path | None, typer.Option("--state", help="SQLite file that keeps cursors, so that the next call resumes.")]
Types = Annotated[list[str] | None, typer.Option("--types", help="Only events of these types: a;b, or repeat the option.")]
Count = Annotated[int | None, typer.Option("--partition-count", help="Number of partitions, for feeds of version 1.")]
TokenEnv = Annotated[
    str | None, typer.Option("--token-env", help="Environment variable with the bearer token, for feeds of other servers.")
]


def add_to(app: typer.Typer) -> None:
    """Register the group `feed`."""
    app.add_typer(feeds, name="feed")


@command(feeds, "read")
def read(
    hub: Hub,
    feed: Address,
    follow: Follow = False,
    start: Start = None,
    state: State = None,
    name: Name = None,
    types: Types = None,
    partition_count: Count = None,
    page_size: Annotated[int, typer.Option("--page-size", min=1, help="Events per request.")] = _PAGE,
    token_env: TokenEnv = None,
) -> None:
    """Print the events of a feed, one JSON document per line. With --state, the next call resumes where this one ended."""
    from tidings.cli.terminal.feed_output import Printer, run

    client = _client(
        hub,
        feed,
        follow,
        token_env,
        start=start or "_first",
        store=_store(state),
        name=_named(name, state),
        event_types=_types(types),
        page_size=page_size,
        partition_count=partition_count,
    )
    run(client, Printer(), follow, sys.stdout.fileno() if follow else None, start=start)


@command(feeds, "forward")
def forward(
    hub: Hub,
    feed: Address,
    to: Annotated[str, typer.Option("--to", help="Topic of the hub that gets the events.")],
    follow: Follow = False,
    start: Start = None,
    state: State = None,
    name: Name = None,
    cursorset: Annotated[
        str | None, typer.Option("--cursorset", help="Let the feed's server keep the cursors under this name.")
    ] = None,
    types: Types = None,
    partition_count: Count = None,
    page_size: Annotated[int, typer.Option("--page-size", min=1, help="Events per request.")] = _PAGE,
    token_env: TokenEnv = None,
    skip_refused: Annotated[
        bool, typer.Option("--skip-refused", help="Skip events that the topic refuses, and report them on stderr.")
    ] = False,
) -> None:
    """Publish the events of a feed to a topic, at least once: payloads as they are, with key and headers."""
    from tidings.cli.terminal.feed_output import Forwarder, run

    if (state is None) == (cursorset is None):
        raise Rejected(
            "forwarding goes on where it ended, so it needs one place for cursors", expected="--state or --cursorset"
        )
    client = _client(
        hub,
        feed,
        follow,
        token_env,
        start=start or "_first",
        store=_store(state),
        name=_named(name, state),
        event_types=_types(types),
        page_size=page_size,
        partition_count=partition_count,
        cursorset=cursorset,
        event_headers="_all",
    )
    forwarder = Forwarder(hub.client, to, client, patient=follow, skip_refused=skip_refused)
    run(client, forwarder, follow, start=start)
    skipped = {"skipped": forwarder.skipped} if skip_refused else {}
    if hub.json:
        print_json({"accepted": forwarder.accepted, **skipped})
    else:
        say(f"{forwarder.accepted:,} events forwarded" + (f", {forwarder.skipped:,} skipped" if skipped else ""))


@command(feeds, "partitions")
def partitions(
    hub: Hub,
    topic: Topic,
    close: Annotated[
        int | None, typer.Option("--close", metavar="N", help="Close the partitions; new events go to N new ones.")
    ] = None,
    redistribute: Annotated[
        int | None, typer.Option("--redistribute", metavar="N", help="Divide the whole history among N new partitions.")
    ] = None,
) -> None:
    """Show the partitions of a topic's feed, or change their number."""
    if close is not None and redistribute is not None:
        raise Rejected("--close and --redistribute exclude each other", expected="one of them")
    if close is None and redistribute is None:
        found = hub.client.get(f"/feeds/{_segment(topic)}")
    else:
        wanted = {"method": "close", "count": close} if close is not None else {"method": "redistribute", "count": redistribute}
        found = hub.client.post(f"/api/feeds/{_segment(topic)}/partitions", wanted)
    if hub.json:
        print_json(found)
        return
    rows = [
        (
            one["id"],
            "closed" if one.get("closed") else "open",
            one.get("startsAfterPartition", "-"),
            ", ".join(map(str, one.get("cursorFromPartitions", []))) or "-",
        )
        for one in found["partitions"]
    ]
    print_table(("partition", "state", "starts after", "takes cursors of"), rows, empty="no partitions")


@command(feeds, "cursors")
def cursors(
    hub: Hub,
    topic: Topic,
    delete: Annotated[str | None, typer.Option("--delete", metavar="SET", help="Forget a cursor set.")] = None,
    consumer: Annotated[str | None, typer.Option("--consumer", help="Whose set to forget, where readers have names.")] = None,
) -> None:
    """Show the cursor sets that readers of a topic's feed keep at the hub, or forget one."""
    path = f"/api/feeds/{_segment(topic)}/cursorsets"
    if delete is not None:
        hub.client.delete(f"{path}/{_segment(delete)}", {"consumer": consumer})
        print_json({"deleted": delete}) if hub.json else say(f"cursor set {delete} is gone")
        return
    found = hub.client.get(path)
    if hub.json:
        print_json(found)
        return
    for one in found["cursors"]:
        one["lag"] = f"{one['lag']}{'' if one['lagWhole'] else '+'}"
    rows = [tuple(one.get(name) for name in _CURSOR_COLUMNS) for one in found["cursors"]]
    print_table(_CURSOR_HEADINGS, rows, empty="nobody keeps cursors here")


_CURSOR_COLUMNS = ("consumer", "name", "version", "n", "partition", "cursor", "lag", "lastUsed")
_CURSOR_HEADINGS = ("consumer", "cursor set", "version", "n", "partition", "cursor", "behind", "last used")


def _client(hub: Hub, feed: str, follow: bool, token_env: str | None, **options: Any) -> FeedClient:
    from tidings.client.feeds import FeedClient

    if not feed:
        raise Rejected("the feed is empty", at="FEED", expected="a topic such as orders, or the address of a feed")
    url = feed if "://" in feed else f"{hub.client.url}/feeds/{_segment(feed)}"
    return FeedClient(url, wait=_WAIT if follow else None, token=_token(hub, url, token_env), **options)


def _token(hub: Hub, url: str, token_env: str | None) -> str | None:
    """The token for a feed. The hub's own token never goes to another server."""
    if token_env is not None:
        if not os.environ.get(token_env):
            raise Rejected("the variable holds no token", at="--token-env", found=token_env)
        return os.environ[token_env]
    is_the_hub = urlsplit(url)[:2] == urlsplit(hub.client.url)[:2]
    was_typed = hub.token is not None and hub.token != os.environ.get("TIDINGS_TOKEN")
    return hub.token if is_the_hub or was_typed else None


def _store(state: Path | None) -> Store | None:
    if state is None:
        return None
    from tidings.client.feeds import SqliteStore

    return SqliteStore(state)


def _named(name: str | None, state: Path | None) -> str | None:
    if name is not None and (state is None or not name.strip()):
        raise Rejected("a name is for cursors in a file", at="--name", found=name, expected="--state FILE --name NAME")
    return name


def _types(given: list[str] | None) -> list[str] | None:
    """The types asked for, or None for all."""
    return [word.strip() for one in given for word in one.split(";") if word.strip()] if given else None


def _segment(name: str) -> str:
    return quote(name, safe="~:")
