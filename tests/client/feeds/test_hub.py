"""The client against the hub's own feeds, over HTTP."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.api_process import ApiProcess, an_api
from tests.client.feeds.readers import SOON, Table, in_order_of_keys
from tests.polling import until
from tidings.client import FeedClient
from tidings.client.feeds import Batch
from tidings.client.http import HubClient
from tidings.errors import HubProblem, HubUnreachable

pytestmark = pytest.mark.slow

_topics = count()


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    with an_api(tmp_path_factory.mktemp("hub") / "data") as running:
        yield running


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path / "mine.db")


class Feed:
    """A topic of its own and its feed."""

    def __init__(self, hub: HubClient, partitions: int = 2) -> None:
        self.hub, self.topic = hub, f"orders-{next(_topics)}"
        self.url = f"{hub.url}/feeds/{self.topic}"
        hub.put(f"/api/topics/{self.topic}", {"feed": {"partitions": partitions}})

    def publish(self, numbers: range, keys: int = 7) -> None:
        batch = [
            {"specversion": "1.0", "id": str(n), "source": "/shop", "type": f"t{n % 3}", "subject": f"k{n % keys}"}
            | {"data": {"n": n, "key": f"k{n % keys}"}}
            for n in numbers
        ]
        body, kind = json.dumps(batch).encode(), "application/cloudevents-batch+json"
        self.hub.send("POST", f"/api/topics/{self.topic}/events", body, content_type=kind)

    def grow(self, method: str, count: int) -> None:
        self.hub.post(f"/api/feeds/{self.topic}/partitions", {"method": method, "count": count})

    def client(self, table: Table, **more: Any) -> FeedClient:
        return FeedClient(self.url, store=table.store, **{"backoff": SOON, "poll_interval": 0.02, "page_size": 10, **more})


@pytest.fixture
def feed(api: ApiProcess) -> Feed:
    return Feed(HubClient(f"http://127.0.0.1:{api.port}"))


def read_all(feed: Feed, table: Table, **more: Any) -> None:
    async def go() -> None:
        async with feed.client(table, **more) as client:
            await client.run(table.apply, follow=False)

    asyncio.run(asyncio.wait_for(go(), 240))


@contextmanager
def following(feed: Feed, table: Table, **more: Any) -> Iterator[None]:
    """A reader in a thread of its own, stopped at the end."""
    loop, failures = asyncio.new_event_loop(), []

    async def go() -> None:
        async with feed.client(table, **more) as client:
            await client.run(table.apply)

    def run() -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(reading)
        except asyncio.CancelledError:
            pass
        except BaseException as error:
            failures.append(error)

    reading = loop.create_task(go())
    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(reading.cancel)
        thread.join(30)
    assert not failures, failures


def applied(table: Table, total: int) -> None:
    with_own_eyes = Table(Path(table.file))
    until(lambda: len(with_own_eyes.numbers) >= total)
    assert sorted(with_own_eyes.numbers) == list(range(total))
    assert in_order_of_keys(with_own_eyes)


@pytest.mark.parametrize(("method", "wait"), [("close", None), ("redistribute", None), ("close", 5), ("redistribute", 5)])
def test_ft18_ft19_partitions_grow_under_a_running_reader(feed: Feed, table: Table, method: str, wait: int | None) -> None:
    with following(feed, table, wait=wait):
        feed.publish(range(100))
        feed.grow(method, 4)
        feed.publish(range(100, 200))
        feed.grow(method, 8)
        feed.publish(range(200, 300))
        applied(table, 300)


def test_ft20_closed_then_redistributed_while_the_reader_is_stopped_in_the_parent(feed: Feed, table: Table) -> None:
    feed.publish(range(100))

    def stop_at_forty(tx: Any, batch: Batch) -> None:
        if len(table.numbers) >= 40:
            raise InterruptedError
        table.apply(tx, batch)

    async def go() -> None:
        async with feed.client(table, max_batch=1) as client:
            await client.run(stop_at_forty, follow=False)

    with pytest.raises(InterruptedError):
        asyncio.run(go())
    feed.grow("close", 4)
    feed.publish(range(100, 150))
    feed.grow("redistribute", 8)
    feed.publish(range(150, 200))
    read_all(feed, table)
    applied(table, 200)


def test_an_empty_child_does_not_send_its_heirs_back_to_the_beginning(feed: Feed, table: Table) -> None:
    feed.publish(range(50))
    feed.grow("close", 4)
    read_all(feed, table)
    feed.grow("redistribute", 8)
    feed.publish(range(50, 80))
    read_all(feed, table)
    applied(table, 80)


@pytest.mark.parametrize("multi", [False, True])
@pytest.mark.parametrize("n", [1, 2, 8])
def test_ft22_a_reader_of_version_1_never_notices_that_partitions_grow(feed: Feed, table: Table, n: int, multi: bool) -> None:
    """The feed speaks version 1 alone, so that the client negotiates it."""
    feed.hub.put(f"/api/topics/{feed.topic}", {"feed": {"partitions": 2, "versions": "v1"}})
    feed.publish(range(60))
    read_all(feed, table, partition_count=n, multi=multi)
    feed.grow("close", 4)
    feed.publish(range(60, 120))
    read_all(feed, table, partition_count=n, multi=multi)
    feed.grow("redistribute", 8)
    feed.publish(range(120, 180))
    read_all(feed, table, partition_count=n, multi=multi)
    applied(table, 180)


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.sampled_from(["publish", "publish", "close", "redistribute", "read", "crash", "crash"]), max_size=12),
    st.sampled_from([1, 2]),
    st.sampled_from([1, 10, 1000]),
    st.sampled_from([1, 20, 1000]),
    st.randoms(use_true_random=False),
)
def test_whatever_happens_every_event_is_applied_once_in_the_order_of_its_key(
    api: ApiProcess, steps: list[str], partitions: int, page_size: int, max_batch: int, chance: random.Random
) -> None:
    feed, count, total = Feed(HubClient(f"http://127.0.0.1:{api.port}"), partitions), partitions, 0
    more = {"page_size": page_size, "max_batch": max_batch}
    with tempfile.TemporaryDirectory() as folder:
        table = Table(Path(folder) / "mine.db")
        for step in steps:
            match step:
                case "publish":
                    size = chance.randint(1, 150)
                    feed.publish(range(total, total + size), keys=chance.randint(1, 40))
                    total += size
                case "close" | "redistribute" if count < 16:
                    count *= 2
                    feed.grow(step, count)
                case "read":
                    read_all(feed, table, **more)
                case "crash":
                    crash(feed, table, chance.randint(0, 4), **more)
        read_all(feed, table, **more)
        assert sorted(table.numbers) == list(range(total))
        assert in_order_of_keys(table)
        table.store.close()


def crash(feed: Feed, table: Table, batches: int, **more: Any) -> None:
    """A reader that dies between its handler and the commit, after so many batches."""
    left = batches

    def handle(tx: Any, batch: Batch) -> None:
        nonlocal left
        table.apply(tx, batch)
        left -= 1
        if left < 0:
            raise InterruptedError

    async def go() -> None:
        async with feed.client(table, **more) as client:
            await client.run(handle, follow=False)

    with suppress(InterruptedError):
        asyncio.run(asyncio.wait_for(go(), 240))


def test_an_event_wakes_a_waiting_reader(feed: Feed, table: Table) -> None:
    with following(feed, table, wait=30, poll_interval=60.0, start="_last"):
        seen = Table(table.file)
        until(lambda: [row.cursor != "_last" for row in seen.store.load(feed.url).values()] == [True, True])
        feed.publish(range(3))
        applied(table, 3)


def test_types_are_chosen_by_the_hub_and_nothing_is_read_twice(feed: Feed, table: Table) -> None:
    feed.publish(range(90))
    read_all(feed, table, event_types=["T0", "t2"])
    assert sorted(table.numbers) == [n for n in range(90) if n % 3 != 1]


def test_a_cursor_set_keeps_the_place_at_the_hub(feed: Feed, tmp_path: Path) -> None:
    taken: list[int] = []

    async def go() -> None:
        client = FeedClient(feed.url, cursorset="me", page_size=10, backoff=SOON)
        async with client:
            await client.run(lambda tx, batch: taken.extend(event.data["data"]["n"] for event in batch), follow=False)

    for upto in (50, 80, 80):
        feed.publish(range(len(taken), upto)) if upto > len(taken) else None
        asyncio.run(go())
        assert sorted(taken) == list(range(upto))


def test_what_is_refused_is_told(feed: Feed, table: Table) -> None:
    with pytest.raises(HubProblem, match="no feed"):
        asyncio.run(FeedClient(f"{feed.url}-not").discover())
    with pytest.raises(HubProblem):
        read_all(feed, table, start="nonsense")


def test_a_reader_killed_and_a_hub_killed_in_mid_stream_lose_and_repeat_nothing(tmp_path: Path) -> None:
    """Both ends die without a word, many times, while events come in and partitions change."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    hub, table = HubClient(f"http://127.0.0.1:{port}"), Table(tmp_path / "mine.db")
    with _an_api(tmp_path, port):
        feed = Feed(hub)
    total = 0
    for partitions in (4, 16):
        with _a_reader(feed, table):
            for method, count in (("close", partitions), ("redistribute", partitions * 2)):
                hub.close()
                with _an_api(tmp_path, port):
                    feed.publish(range(total, total + 300))
                    feed.grow(method, count)
                    feed.publish(range(total + 300, total + 600))
                    total += 600
                    until(partial(_has_begun, table, total - 500))
                    # The hub dies here, with the reader in the middle of it; and every other time the reader after it.
    with _an_api(tmp_path, port), _a_reader(feed, table):
        applied(table, total)


def _has_begun(table: Table, count: int) -> bool:
    return len(table.numbers) > count


@contextmanager
def _an_api(folder: Path, port: int) -> Iterator[None]:
    """The api part as a process, killed at the end."""
    command = [sys.executable, "-m", "tidings.cli", "api", "--data", str(folder / "data"), "--port", str(port)]
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    deadline = time.monotonic() + 60
    while True:
        try:
            HubClient(f"http://127.0.0.1:{port}").get("/health/live")
            break
        except (HubUnreachable, HubProblem):
            assert process.poll() is None and time.monotonic() < deadline, (folder / "log").read_text()
            time.sleep(0.05)
    try:
        yield
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


@contextmanager
def _a_reader(feed: Feed, table: Table) -> Iterator[None]:
    """A reader as a process, killed at the end."""
    command = [sys.executable, "-m", "tests.client.feeds.reader_process", feed.url, str(table.file), "0.005"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=Path(__file__).parents[3])
    try:
        yield
    finally:
        process.kill()
        process.wait()
