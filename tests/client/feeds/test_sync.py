"""The plain form of the client, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.client.feeds.foreign import Foreign
from tests.client.feeds.readers import SOON, Table, published
from tidings.client import FeedClient, SyncFeedClient
from tidings.client.feeds import FeedEvent
from tidings.errors import Misconfigured


def test_it_reads_without_an_event_loop(tmp_path: Path) -> None:
    table = Table(tmp_path / "mine.db")
    with Foreign(partitions=2).served() as feed, SyncFeedClient(feed.url, store=table.store, backoff=SOON) as client:
        numbers = published(feed, 30)
        assert [one.id for one in client.discover().partitions] == ["0", "1"]
        page = [one for one in client.fetch("0") if isinstance(one, FeedEvent)]
        assert {event.partition for event in page} == {"0"}
        next(iter(client.fetch("0")))
        client.run(table.apply, follow=False)
    assert sorted(table.numbers) == numbers


@pytest.mark.parametrize(
    "wrong",
    [
        {"url": "ftp://x"},
        {"url": "orders"},
        {"partition_count": 0},
        {"page_size": 0},
        {"wait": -1},
        {"wait": 1.5},
        {"event_types": "a;b"},
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_asked(wrong: dict[str, object]) -> None:
    with pytest.raises(Misconfigured):
        FeedClient(**{"url": "http://127.0.0.1:1/feed", **wrong})  # type: ignore[arg-type]


def test_the_client_needs_nothing_heavy() -> None:
    heavy = ("pyspark", "pyarrow", "fastapi", "ada_url", "sqlalchemy", "uvicorn", "tidings.config", "tidings.log")
    for module in ("tidings.client", "tidings.client.feeds"):
        script = f"import sys, {module}; print([m for m in {heavy} if m in sys.modules])"
        assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "[]\n"
    script = "import sys, tidings.client; print('asyncio' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "False\n"
