"""Exactly once in the consumer's database: under random publishing, repartitioning, page sizes, failures and crashes."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.client.feeds.foreign import Foreign, answering
from tests.client.feeds.readers import Table, a_client, in_order_of_keys, published, read_all
from tests.polling import until
from tidings.client.feeds import Batch


class Crash(BaseException):
    """The reader is gone, between what its handler did and the commit."""


STEPS = st.one_of(
    st.tuples(st.just("publish"), st.integers(1, 30)),
    st.tuples(st.just("close"), st.just(0)),
    st.tuples(st.just("redistribute"), st.just(0)),
    st.tuples(st.just("read, then crash"), st.integers(0, 6)),
    st.tuples(st.just("cut"), st.integers(0, 900)),
    st.tuples(st.just("fail"), st.sampled_from([409, 429, 500, 503])),
    st.tuples(st.just("read"), st.just(0)),
)


@pytest.mark.slow
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(STEPS, min_size=2, max_size=12),
    st.integers(1, 2),
    st.sampled_from([1, 3, 50]),
    st.sampled_from([None, 1, 7, 100]),
    st.booleans(),
    st.integers(0, 1000),
)
def test_every_event_is_applied_exactly_once_in_the_order_of_its_key(
    steps: list[tuple[str, int]], partitions: int, every: int, page_size: int | None, restless: bool, seed: int
) -> None:
    made = Foreign(partitions=partitions, every=every, restless=restless, seed=seed)
    with made.served() as feed, tempfile.TemporaryDirectory() as folder:
        table = Table(Path(folder) / "mine.db")
        keys, count = random.Random(seed), 0
        for step, number in steps:
            match step:
                case "publish":
                    for _ in range(number):
                        feed.cloudevent(f"k{keys.randint(0, 9)}", count)
                        count += 1
                case "close" if len(feed.parts) < 16:
                    feed.close()
                case "redistribute" if len(feed.parts) < 16:
                    feed.redistribute()
                case "cut":
                    feed.cuts.append(number)
                case "fail":
                    feed.faults.append(answering(number))
                case "read":
                    read_all(feed, table, page_size=page_size)
                case "read, then crash":
                    crash_after(feed, table, number, page_size)
        feed.cuts.clear()
        feed.faults.clear()
        read_all(feed, table, page_size=page_size)
        assert sorted(table.numbers) == list(range(count))
        assert in_order_of_keys(table)
        table.store.close()


def crash_after(feed: Foreign, table: Table, batches: int, page_size: int | None) -> None:
    left = batches

    def handle(tx: Any, batch: Batch) -> None:
        nonlocal left
        table.apply(tx, batch)
        left -= 1
        if left < 0:
            raise Crash

    async def go() -> None:
        async with a_client(feed, table.store, page_size=page_size, max_batch=3) as client:
            await client.run(handle, follow=False)

    try:
        asyncio.run(asyncio.wait_for(go(), 240))
    except Crash:
        pass


@contextmanager
def a_reader(url: str, file: Path, pause: float = 0.0) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "tests.client.feeds.reader_process", url, str(file), str(pause)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[3])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def until_applied(table: Table, count: int, seconds: float = 60) -> None:
    until(lambda: len(table.numbers) >= count, lambda: f"{len(table.numbers)} of {count} applied", within=seconds)


@pytest.mark.slow
def test_ft30_a_reader_killed_between_handler_and_commit_applies_everything_once(tmp_path: Path) -> None:
    file = tmp_path / "mine.db"
    with Foreign(partitions=2).served() as feed:
        numbers = published(feed, 120)
        table = Table(file)
        for kills in range(4):
            with a_reader(feed.url, file, pause=0.05) as reader:
                assert reader.stdout is not None
                for _ in range(1 + kills):
                    reader.stdout.readline()
                # The handler has run, its transaction is open.
        assert len(table.numbers) < 120, "the kills came too late to prove anything"
        with a_reader(feed.url, file):
            until_applied(table, 120)
    assert sorted(table.numbers) == numbers
    assert in_order_of_keys(table)


@pytest.mark.slow
def test_two_readers_on_one_database_do_not_apply_anything_twice(tmp_path: Path) -> None:
    file = tmp_path / "mine.db"
    with Foreign().served() as feed:
        numbers = published(feed, 200)
        table = Table(file)
        with a_reader(feed.url, file, 0.01), a_reader(feed.url, file, 0.01):
            until_applied(table, 200)
            time.sleep(0.1)
    assert table.numbers == numbers
