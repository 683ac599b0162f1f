"""Clients that others wrote: the Python package `zeroeventhub`, really run, and doubles of what the Go and .NET ones do."""

from __future__ import annotations

import http.client
import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api_process import ApiProcess
from tests.doors.feeds.go_client import GoClient, GoError
from tests.doors.feeds.reading import Feed, by_key
from tests.hub import free_port

ROOT = Path(__file__).parents[3]
FOREIGN = ROOT / ".foreign" / "zeroeventhub" / "bin" / "python"
HERE = Path(__file__).parent / "foreign"


@pytest.fixture(scope="module")
def foreign() -> Path:
    """The Python that has the foreign package; made by the first who needs it."""
    subprocess.run([ROOT / "scripts" / "foreign", ROOT / ".venv" / "bin" / "python"], check=True, timeout=600)
    return FOREIGN


@pytest.fixture(scope="module")
def filled(api: ApiProcess) -> Feed:
    feed = Feed(api, 4)
    feed.publish(*({"subject": f"k{n % 40}", "data": {"n": n, "text": "ä\u2028\u0085 \U0001f600"}} for n in range(300)))
    return feed


def read(foreign: Path, feed: Feed, *asked: Any) -> Any:
    url = f"http://127.0.0.1:{feed.api.port}{feed.path}"
    done = subprocess.run([foreign, HERE / "reader.py", json.dumps([url, *asked])], capture_output=True, timeout=240)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


@pytest.mark.parametrize("partitions", [[2], [0, 1, 2, 3]])
@pytest.mark.parametrize("hint", [None, 7])
def test_the_foreign_client_reads_every_event(foreign: Path, filled: Feed, partitions: list[int], hint: int | None) -> None:
    got = read(foreign, filled, 4, partitions, hint, None)
    expected = {p: filled.all_v1(4, p) for p in partitions}
    assert {p: [data for q, _, data in got["events"] if q == p] for p in partitions} == expected
    assert got["cursors"].keys() == {str(p) for p in partitions}
    assert all(headers is None for _, headers, _ in got["events"])


def test_the_foreign_client_gets_the_headers_it_asks_for(foreign: Path, filled: Feed) -> None:
    got = read(foreign, filled, 1, [0], 100, ["ce_id", "ce_subject", "absent"])
    assert len(got["events"]) == 300
    assert all(headers == {"ce_id": data["id"], "ce_subject": data["subject"]} for _, headers, data in got["events"])


def test_the_foreign_client_sees_a_refusal_as_an_http_error(foreign: Path, filled: Feed) -> None:
    assert read(foreign, filled, 3, [0], None, None) == {"status": 400}


@pytest.fixture(scope="module")
def oracle(foreign: Path, filled: Feed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of the foreign handler over the same events."""
    partitions = []
    for p in range(4):
        lines, cursor = [], "_first"
        while (page := filled.v1(4, {p: cursor}, pagesizehint=1, headers="_all")).events:
            cursor = page.cursors[p]
            event = next(line for line in page.lines if "data" in line)
            lines.append((int(cursor), event["headers"], event["data"]))
        partitions.append(lines)
    end = int(filled.v1(4, {0: "_last"}).cursors[0])
    document = tmp_path_factory.mktemp("oracle") / "events.json"
    document.write_text(json.dumps({"partitions": partitions, "end": end}))
    port = free_port()
    server = subprocess.Popen([foreign, HERE / "server.py", str(document), str(port)])
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                ask(port, "/feed")
                break
            except OSError:
                time.sleep(0.1)
        yield port
    finally:
        server.terminate()
        server.wait(20)


def ask(port: int, path: str) -> tuple[int, str, list[Any]]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        body, kind = answer.read(), answer.headers["content-type"]
    finally:
        connection.close()
    return answer.status, kind, [json.loads(line) for line in body.split(b"\n") if line] if answer.status == 200 else []


@pytest.mark.parametrize(
    "query",
    [
        "cursor0=_first",
        "n=&cursor0=_first",
        "n=abc&cursor0=_first",
        "n=0&cursor0=_first",
        "n=3&cursor0=_first",
        "n=4",
        "n=4&cursor4=_first",
        "n=4&cursor0=",
        "n=4&cursor0=_first&pagesizehint=x",
        "n=4&cursor0=_first",
        "n=4&cursor0=_first&cursor9=x",
        "n=4&cursor1=_first&pagesizehint=13",
        "n=4&cursor0=_first&cursor1=_first&cursor2=_first&cursor3=_first&pagesizehint=10000",
        "n=4&cursor2=_last",
        "n=4&cursor0=1000000000000",
        "n=4&cursor3=_first&headers=ce_id,ce_subject,",
        "n=4&cursor3=_first&headers=",
        "cursor0=_first&headers=ce_id&n=4&pagesizehint=2",
    ],
)
def test_the_foreign_handler_and_ours_answer_alike(oracle: int, filled: Feed, query: str) -> None:
    theirs, ours = ask(oracle, f"/feed?{query}"), ask(filled.api.port, f"{filled.path}?{query}")
    assert ours[0] == theirs[0]
    if ours[0] == 200:
        assert ours[1].partition(";")[0] == theirs[1].partition(";")[0] == "application/x-ndjson"
        for p in range(4):
            assert events_of(ours[2], p) == events_of(theirs[2], p)
            assert cursors_of(ours[2], p)[-1:] == cursors_of(theirs[2], p)[-1:]


def events_of(lines: list[Any], partition: int) -> list[Any]:
    return [line for line in lines if line["partition"] == partition and "data" in line]


def cursors_of(lines: list[Any], partition: int) -> list[Any]:
    return [line for line in lines if line["partition"] == partition and "cursor" in line]


@pytest.mark.parametrize("method", ["close", "redistribute"])
def test_the_go_client_reads_v2_over_a_change_of_partitions(api: ApiProcess, method: str) -> None:
    feed = Feed(api, 2, feed={"relationsAsInt": True, "firstPartitionId": 1})
    feed.publish_keyed(120)
    client = GoClient(f"http://127.0.0.1:{api.port}{feed.path}")
    got = client.read_all(page_size=25)
    feed.repartition(method, 4)
    feed.publish_keyed(80)
    got += client.read_all(page_size=25)
    assert sorted((event["id"] for event in got), key=int) == [str(n) for n in range(1, 201)]
    assert all(ids == sorted(ids, key=int) for ids in by_key(got).values())


def test_the_go_client_reads_a_topic_that_was_made_without_a_thought_of_it(api: ApiProcess) -> None:
    assert api.call("PUT", "/api/topics/for-go", {}).status == 201
    assert api.call("PUT", "/api/topics/for-go", {"feed": {"relationsAsInt": True}}).status == 200
    client, got = GoClient(f"http://127.0.0.1:{api.port}/feeds/for-go"), []
    head = {"specversion": "1.0", "source": "/s", "type": "t"}
    for n, method in enumerate(("close", "close", "redistribute")):
        events = [{**head, "id": f"{n}{key}", "subject": key} for key in "abcdefgh"]
        assert api.publish("for-go", events, "application/cloudevents-batch+json").status == 202
        got += client.read_all(page_size=25)
        body = {"method": method, "count": 2 << n}
        assert api.call("POST", "/api/feeds/for-go/partitions", body).status == 200
    got += client.read_all(page_size=25)
    assert len(got) == len({event["id"] for event in got}) == 24


def test_the_go_client_needs_relations_as_integers(api: ApiProcess) -> None:
    feed = Feed(api, 1)
    client = GoClient(f"http://127.0.0.1:{api.port}{feed.path}")
    assert client.discover()
    feed.repartition("close", 2)
    with pytest.raises(GoError, match="cannot unmarshal string"):
        client.discover()


def test_the_go_client_falls_back_to_v1_where_it_must(api: ApiProcess) -> None:
    feed = Feed(api, 2, feed={"versions": "v1"})
    feed.publish_keyed(60)
    got = GoClient(f"http://127.0.0.1:{api.port}{feed.path}", partitions=2).read_all(page_size=10)
    assert sorted((event["id"] for event in got), key=int) == [str(n) for n in range(1, 61)]
    with pytest.raises(GoError, match="400"):
        GoClient(f"http://127.0.0.1:{api.port}{feed.path}").discover()


def test_the_go_client_silently_misses_what_comes_after_a_long_line(api: ApiProcess) -> None:
    """Why long lines are counted, and may be refused: everything behind one is lost to this reader, without an error."""
    feed = Feed(api, 1, maxEventBytes="1MiB")
    feed.publish({}, {"data": "x" * 66_000}, {})
    client = GoClient(f"http://127.0.0.1:{api.port}{feed.path}")
    assert [event["id"] for event in client.read_once("0", "_first")] == ["1"]


@pytest.mark.parametrize("query", ["n=1&cursor0=_first", "n=2&cursor0=_first&cursor1=_first&headers=ce_id"])
def test_a_long_line_has_a_checkpoint_directly_before_it(api: ApiProcess, query: str) -> None:
    """So a reader that gives up there has everything before it for good, and gets nothing of that again."""
    feed = Feed(api, 1, maxEventBytes="1MiB")
    feed.publish({"subject": "a"}, {"subject": "a"}, {"subject": "a", "data": "x" * 66_000}, {"subject": "a"})
    feed.publish({"subject": "a", "data": "x" * 66_000})
    for body in (
        feed.raw(f"?{query}").body,
        feed.get("/events", token=feed.discover()["token"], partition=0, cursor="_first").body,
    ):
        lines = [json.loads(line) for line in body.splitlines()]
        places = [n for n, line in enumerate(lines) if len(str(line)) > 66_000]
        assert len(places) == 2
        for n, id in zip(places, (3, 5), strict=True):
            assert lines[n]["data"]["id"] == str(id) and lines[n - 1]["cursor"] == str(feed.after(id - 1))
            assert lines[n - 1].get("partition") == lines[n].get("partition")


def test_every_line_keeps_what_dotnet_and_go_rely_on(filled: Feed) -> None:
    whole = filled.get(n=4, **{f"cursor{p}": "_first" for p in range(4)}, headers="_all", pagesizehint=1000).body
    assert b"\r" not in whole and not any(line != line.strip() for line in whole.split(b"\n"))
    for raw in filter(None, whole.split(b"\n")):
        line = json.loads(raw)
        assert type(line["partition"]) is int and len(raw) <= 65_535
        if "cursor" in line:
            assert line.keys() == {"partition", "cursor"} and isinstance(line["cursor"], str) and line["cursor"]
        else:
            assert line.keys() == {"partition", "headers", "data"} and isinstance(line["data"], dict)
            assert all(isinstance(value, str) for value in line["headers"].values())
    token = filled.discover()["token"]
    for raw in filled.get("/events", token=token, partition=1, cursor="_first").body.splitlines():
        assert json.loads(raw).keys() in ({"data"}, {"cursor"})
