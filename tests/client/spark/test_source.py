"""`tidings-feed` in a real Spark session: exactly once through Spark's checkpoint, from servers of every kind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.api_process import an_api
from tests.client.feeds.foreign import Foreign
from tests.client.feeds.readers import published
from tests.polling import until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

pytestmark = pytest.mark.spark


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    from tidings.client.spark import register

    register(spark)
    return spark


def a_stream(session: SparkSession, url: str, **options: Any) -> DataFrame:
    return session.readStream.format("tidings-feed").options(url=url, pollInterval="0.05", **options).load()


def into_parquet(session: SparkSession, url: str, folder: Path, **options: Any) -> list[str]:
    """Everything there is now into a table; its ids."""
    writing = a_stream(session, url, **options).writeStream.format("parquet")
    query = writing.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True)
    query.start(str(folder / "table")).awaitTermination()
    return ids_in(session, folder)


def ids_in(session: SparkSession, folder: Path) -> list[str]:
    return sorted((row.id for row in session.read.parquet(str(folder / "table")).select("id").collect()), key=int)


def names(numbers: range) -> list[str]:
    return [str(n) for n in numbers]


@contextmanager
def stopping(query: StreamingQuery) -> Iterator[StreamingQuery]:
    try:
        yield query
    finally:
        query.stop()


@pytest.mark.parametrize("restless", [False, True])
def test_a_feed_becomes_a_table_exactly_once_while_its_partitions_change(
    session: SparkSession, tmp_path: Path, restless: bool
) -> None:
    with Foreign(partitions=2, restless=restless).served() as feed:
        published(feed, 60)
        assert into_parquet(session, feed.url, tmp_path, maxEventsPerBatch=25) == names(range(60))
        feed.close()
        published(feed, 30, since=60)
        feed.redistribute()
        published(feed, 30, since=90)
        assert into_parquet(session, feed.url, tmp_path) == names(range(120))
        assert into_parquet(session, feed.url, tmp_path) == names(range(120))


def test_a_batch_that_failed_is_read_again_with_the_same_events_under_other_partitions(
    session: SparkSession, tmp_path: Path
) -> None:
    """Spark has written down the batch, then the application dies; the feed is redistributed before it comes back."""
    seen: dict[int, list[list[str]]] = {}
    failing = True

    def take(batch: DataFrame, number: int) -> None:
        seen.setdefault(number, []).append(sorted(row.id for row in batch.select("id").collect()))
        if failing and number == 1:
            raise ZeroDivisionError

    def run(url: str) -> StreamingQuery:
        stream = a_stream(session, url, maxEventsPerBatch=20).writeStream.foreachBatch(take)
        return stream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()

    with Foreign(partitions=2, restless=True).served() as feed:
        published(feed, 60)
        with pytest.raises(Exception, match="ZeroDivisionError"):
            run(feed.url).awaitTermination()
        feed.redistribute()
        published(feed, 20, since=60)
        failing = False
        run(feed.url).awaitTermination()
    first, second = seen[1]
    assert first == second
    assert sorted((id for batches in seen.values() for id in batches[-1]), key=int) == names(range(80))


def test_a_running_query_follows_a_feed_whose_server_goes_away_for_a_while(session: SparkSession, tmp_path: Path) -> None:
    got: list[str] = []

    def take(batch: DataFrame, number: int) -> None:
        got.extend(row.id for row in batch.select("id").collect())

    def came(count: int) -> bool:
        assert query.isActive, query.exception()
        return len(got) >= count

    from tests.client.feeds.foreign import answering

    with Foreign(partitions=2).served() as feed:
        stream = a_stream(session, feed.url, start="_last").writeStream.foreachBatch(take)
        published(feed, 3)
        with stopping(stream.option("checkpointLocation", str(tmp_path / "checkpoint")).start()) as query:
            until(lambda: any("cursor" in one.query for one in feed.asked), "the query reads on")
            time.sleep(0.5)
            published(feed, 4, since=3)
            until(lambda: came(4), "four rows")
            feed.faults = [answering(503)] * 3
            feed.close()
            published(feed, 4, since=7)
            until(lambda: came(8), "eight rows")
    assert sorted(got, key=int) == names(range(3, 11))


def test_a_feed_is_read_as_it_is_now(session: SparkSession) -> None:
    with Foreign(partitions=3, version=1).served() as feed:
        published(feed, 50)
        feed.publish("k", "plain text")
        frame = session.read.format("tidings-feed").options(url=feed.url, partitionCount="3").load()
        assert frame.columns == ["id", "source", "type", "subject", "time", "datacontenttype", "data", "attributes"]
        assert frame.rdd.getNumPartitions() == 3
        assert sorted((row.id for row in frame.collect() if row.id is not None), key=int) == names(range(50))
        assert [row.data for row in frame.where("id is null").collect()] == ["plain text"]
        assert frame.where("get_json_object(data, '$.n') < 5").count() == 5


def test_the_hub_is_read_like_any_other_server(session: SparkSession, tmp_path: Path) -> None:
    with an_api(tmp_path / "data") as api:
        api.call("PUT", "/api/topics/orders", {"feed": {"partitions": 2}})

        def publish(numbers: range) -> None:
            event = {"specversion": "1.0", "source": "/s", "type": "t", "time": "2026-01-01T00:00:00Z"}
            batch = [{**event, "id": str(n), "subject": f"k{n % 5}", "data": {"n": n}} for n in numbers]
            assert api.publish("orders", batch, "application/cloudevents-batch+json").status < 300

        url = f"http://127.0.0.1:{api.port}/feeds/orders"
        publish(range(100))
        assert into_parquet(session, url, tmp_path, maxEventsPerBatch=30, pageSize=10) == names(range(100))
        for method, count, numbers in (("close", 4, range(100, 200)), ("redistribute", 8, range(200, 300))):
            assert api.call("POST", "/api/feeds/orders/partitions", {"method": method, "count": count}).status == 200
            publish(numbers)
        assert into_parquet(session, url, tmp_path) == names(range(300))
        row = session.read.parquet(str(tmp_path / "table")).where("id = '7'").first()
        assert row is not None
        assert (row.subject, row.data, row.time.year) == ("k2", '{"n":7}', 2026)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_killed_application_goes_on_from_its_checkpoint(session: SparkSession, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.client.spark.stream_process"]
    with Foreign(partitions=2, restless=True).served() as feed:
        published(feed, 400)
        # A session of its own, so that Java and the workers die in the same moment.
        process = subprocess.Popen([*command, feed.url, str(tmp_path)], cwd=Path(__file__).parents[3], start_new_session=True)
        try:
            deadline = time.monotonic() + 400
            while not (tmp_path / "checkpoint" / "commits" / "2").exists():
                assert process.poll() is None and time.monotonic() < deadline
                time.sleep(0.005)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        feed.redistribute()
        assert into_parquet(session, feed.url, tmp_path) == names(range(400))


PLAIN = """
import sys
from pyspark.sql import SparkSession
from tidings.client.spark import register

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
register(spark)
print(spark.read.format("tidings-feed").option("url", sys.argv[1]).load().count(), "events")
"""


def test_a_script_needs_no_activated_environment(tmp_path: Path) -> None:
    """Spark starts `python3` of the PATH for its workers unless it is told otherwise, and that one may have nothing of ours."""
    bare = tmp_path / "bin"
    bare.mkdir()
    (bare / "python3").write_text("#!/bin/sh\necho no such module >&2\nexit 1\n")
    (bare / "python3").chmod(0o755)
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK") and name != "VIRTUAL_ENV"}
    env |= {"PATH": f"{bare}:{env['PATH']}", "SPARK_LOCAL_IP": "127.0.0.1"}
    with Foreign().served() as feed:
        published(feed, 7)
        words = [sys.executable, "-c", PLAIN, feed.url]
        ran = subprocess.run(words, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=800)
    assert ran.stdout == "7 events\n", ran.stderr[-2000:]
