"""`tidings feed …` as processes, against a running api part and a server that is not ours."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.api_process import ApiProcess, an_api
from tests.client.feeds.foreign import Foreign
from tests.polling import until
from tidings.cli.terminal.feed_output import as_cloudevent, event_ids, source_of
from tidings.client.feeds import Batch, FeedEvent

pytestmark = pytest.mark.slow

_topics = count()


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    with an_api(tmp_path_factory.mktemp("hub") / "data") as running:
        yield running


@pytest.fixture
def topic(api: ApiProcess) -> str:
    name = f"orders-{next(_topics)}"
    assert api.call("PUT", f"/api/topics/{name}", {}).status == 201
    return name


def publish(api: ApiProcess, topic: str, numbers: range) -> None:
    for n in numbers:
        event = {"specversion": "1.0", "id": str(n), "source": "/s", "type": f"t{n % 2}", "subject": "k", "data": {"n": n}}
        assert api.publish(topic, event, "application/cloudevents+json").status < 300


def command(api: ApiProcess, *words: str, **env: str) -> dict[str, Any]:
    variables = {**os.environ, "TIDINGS_URL": f"http://127.0.0.1:{api.port}", "TIDINGS_TOKEN": "", **env}
    return {"args": [sys.executable, "-m", "tidings.cli", "feed", *words], "env": variables}


def run(api: ApiProcess, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(**command(api, *words, **env), capture_output=True, text=True, timeout=240)


def ids(lines: str) -> list[str]:
    return [json.loads(line)["id"] for line in lines.splitlines()]


def test_a_topic_is_read_as_lines_of_json_and_goes_on_from_its_state(api: ApiProcess, topic: str, tmp_path: Path) -> None:
    publish(api, topic, range(5))
    read = run(api, "read", topic)
    assert (read.returncode, ids(read.stdout), read.stderr) == (0, ["0", "1", "2", "3", "4"], "")
    state = str(tmp_path / "cursors.db")
    assert len(ids(run(api, "read", topic, "--state", state).stdout)) == 5
    publish(api, topic, range(5, 7))
    assert ids(run(api, "read", topic, "--state", state).stdout) == ["5", "6"]
    assert ids(run(api, "read", topic, "--types", "T1;x").stdout) == ["1", "3", "5"]
    assert ids(run(api, "read", topic, "--from", "_last").stdout) == []


def test_a_topic_that_was_repartitioned_deleted_and_made_again_is_read_on(api: ApiProcess, topic: str, tmp_path: Path) -> None:
    state = str(tmp_path / "cursors.db")
    publish(api, topic, range(2))
    assert ids(run(api, "read", topic, "--state", state).stdout) == ["0", "1"]
    assert run(api, "partitions", topic, "--close", "2").returncode == 0
    assert run(api, "read", topic, "--state", state).stdout == ""
    assert api.call("DELETE", f"/api/topics/{topic}").status < 300
    assert api.call("PUT", f"/api/topics/{topic}", {}).status == 201
    publish(api, topic, range(2, 4))
    assert ids(run(api, "read", topic, "--state", state).stdout) == ["2", "3"]


def test_following_ends_when_nobody_reads_what_it_prints(api: ApiProcess, topic: str) -> None:
    publish(api, topic, range(3))
    following = subprocess.Popen(**command(api, "read", topic, "--follow"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert following.stdout is not None and following.stderr is not None
    assert json.loads(following.stdout.readline())["id"] == "0"
    following.stdout.close()
    assert following.stderr.read() == b"" and following.wait(30) is not None


def test_following_prints_what_comes_and_ctrl_c_ends_it_quietly(api: ApiProcess, topic: str, tmp_path: Path) -> None:
    publish(api, topic, range(2))
    state = str(tmp_path / "cursors.db")
    following = subprocess.Popen(
        **command(api, "read", topic, "--follow", "--state", state), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert following.stdout is not None and following.stderr is not None
    assert ids(following.stdout.readline() + following.stdout.readline()) == ["0", "1"]
    publish(api, topic, range(2, 3))
    assert ids(following.stdout.readline()) == ["2"]
    following.send_signal(signal.SIGINT)
    assert (following.wait(30), following.stderr.read()) == (130, "")
    assert ids(run(api, "read", topic, "--state", state).stdout) in ([], ["2"])


def test_a_reader_of_the_output_who_has_enough_is_no_error(api: ApiProcess, topic: str) -> None:
    publish(api, topic, range(3))
    following = subprocess.Popen(
        **command(api, "read", topic, "--follow"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert following.stdout is not None and following.stderr is not None
    following.stdout.readline()
    following.stdout.close()

    def ended() -> bool:
        publish(api, topic, range(100, 101))
        return following.poll() is not None

    until(ended, within=30)
    assert (following.wait(1), following.stderr.read()) == (0, "")


def test_feeds_of_others_are_read_but_never_get_the_token_of_the_hub(api: ApiProcess) -> None:
    with Foreign(partitions=2, version=1).served() as feed:
        feed.cloudevent("k", 1)
        read = run(api, "read", feed.url, "--partition-count", "2", TIDINGS_TOKEN="secret")
        assert (ids(read.stdout), read.stderr) == (["1"], "")
        assert not any("authorization" in one.headers for one in feed.asked)
        feed.asked.clear()
        run(api, "read", feed.url, "--partition-count", "2", "--token-env", "THEIRS", THEIRS="t1")
        run(api, "read", feed.url, "--partition-count", "2", "--token", "t1")
        assert {one.headers["authorization"] for one in feed.asked} == {"Bearer t1"}
        assert run(api, "read", feed.url, "--token-env", "NOBODY").returncode == 1
        without = run(api, "read", feed.url)
        assert (without.returncode, "partition_count" in without.stderr) == (1, True)


def test_what_is_not_there_is_a_sentence_and_an_exit_code(api: ApiProcess, topic: str) -> None:
    nobody, unknown, wrong = (
        run(api, "read", "http://127.0.0.1:1/feed"),
        run(api, "read", f"{topic}-not"),
        run(api, "read", "ftp://x"),
    )
    assert [one.returncode for one in (nobody, unknown, wrong)] == [3, 1, 2]
    assert all(one.stderr.count("\n") == 1 and not one.stdout for one in (nobody, unknown, wrong))


@pytest.mark.parametrize("keeping", ["--state", "--cursorset"])
def test_a_feed_is_forwarded_to_a_topic_untouched_and_once(api: ApiProcess, topic: str, tmp_path: Path, keeping: str) -> None:
    publish(api, topic, range(3))
    raw = b'{"specversion":"1.0","id":"x","source":"/s","type":"t","partitionkey":"p","data":{"n":1.50}}'
    api.publish(topic, raw, "application/cloudevents+json")
    copy = f"{topic}-copy"
    api.call("PUT", f"/api/topics/{copy}", {})
    words = ("forward", topic, "--to", copy, keeping, str(tmp_path / "s.db") if keeping == "--state" else "copying")
    first = run(api, *words)
    assert (first.returncode, first.stdout) == (0, "4 events forwarded\n"), first.stderr
    assert json.loads(run(api, *words, "--json").stdout) == {"accepted": 0}
    assert run(api, "read", copy).stdout == run(api, "read", topic).stdout
    assert b'"n":1.50' in api.call("GET", f"/feeds/{copy}?n=1&cursor0=_first").body


def test_every_json_value_that_a_topic_serves_as_payload_is_read_and_forwarded(
    api: ApiProcess, topic: str, tmp_path: Path
) -> None:
    api.call("PUT", f"/api/topics/{topic}-v1", {"feed": {"versions": "v1", "v1Data": "payload"}})
    for n, data in enumerate((b'{"n":1}', b"[1,2.50]", b"7", b"true", b'"text"', b"null")):
        event = b'{"specversion":"1.0","id":"%d","source":"/s","type":"t","subject":"k","data":%b}' % (n, data)
        assert api.publish(f"{topic}-v1", event, "application/cloudevents+json").status < 300
    read = run(api, "read", f"{topic}-v1", "--partition-count", "1")
    assert (read.stdout.splitlines(), read.stderr) == (['{"n":1}', "[1,2.50]", "7", "true", '"text"', "{}"], "")
    words = ("forward", f"{topic}-v1", "--partition-count", "1", "--to", topic, "--state", str(tmp_path / "s.db"))
    assert run(api, *words).stdout == "6 events forwarded\n"
    copies = [json.loads(line) for line in run(api, "read", topic).stdout.splitlines()]
    assert [(one["id"], one["data"]) for one in copies][1:4] == [("1", [1, 2.5]), ("2", 7), ("3", True)]


def test_forwarding_needs_one_place_for_cursors(api: ApiProcess, topic: str, tmp_path: Path) -> None:
    for words in ((), ("--state", str(tmp_path / "s.db"), "--cursorset", "x")):
        refused = run(api, "forward", topic, "--to", topic, *words)
        assert (refused.returncode, "--cursorset" in refused.stderr) == (1, True)


def test_what_the_topic_refuses_is_named_after_what_came_before_it_was_sent(
    api: ApiProcess, topic: str, tmp_path: Path
) -> None:
    words = ("forward", "--to", topic, "--state", str(tmp_path / "s.db"))
    with Foreign(every=10).served() as feed:
        for n in range(3):
            feed.cloudevent("k", n)
        feed.publish("k", {"id": "", "source": "/s", "type": "t", "specversion": "1.0"})
        feed.cloudevent("k", 4)
        refused = run(api, *words, feed.url)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert all(word in refused.stderr for word in ("'' of '/s'", "c5x5 of partition 0", "--skip-refused")), refused.stderr
        assert ids(run(api, "read", topic).stdout) == ["0", "1", "2"]
        skipped = run(api, *words, feed.url, "--skip-refused")
        assert (skipped.returncode, skipped.stdout) == (0, "4 events forwarded, 1 skipped\n")
        assert skipped.stderr.count("\n") == 1 and "'' of '/s'" in skipped.stderr
        assert run(api, *words, feed.url, "--skip-refused", "--json").stdout == '{"accepted": 0, "skipped": 0}\n'
    assert ids(run(api, "read", topic).stdout)[-1] == "4"


def test_a_topic_that_is_not_there_is_no_refusal_of_events(api: ApiProcess, topic: str, tmp_path: Path) -> None:
    publish(api, topic, range(2))
    away = run(api, "forward", topic, "--to", f"{topic}-not", "--state", str(tmp_path / "s.db"), "--skip-refused")
    assert (away.returncode, "skip" in away.stderr, away.stderr.count("\n")) == (1, False, 1)


def test_payloads_without_an_id_get_the_same_one_whenever_they_are_forwarded(
    api: ApiProcess, topic: str, tmp_path: Path
) -> None:
    with Foreign(every=2).served() as feed:
        for n in range(7):
            feed.publish("k", {"n": n % 2})
        for name in ("a.db", "b.db"):
            assert run(api, "forward", feed.url, "--to", topic, "--state", str(tmp_path / name)).returncode == 0
    forwarded = ids(run(api, "read", topic).stdout)
    assert len(set(forwarded[:7])) == 7 and forwarded[:7] == forwarded[7:]


def a_batch(payloads: str, since: str, *checkpoints: tuple[int, str]) -> Batch:
    return Batch("0", checkpoints[-1][1], tuple(FeedEvent("0", one.encode()) for one in payloads), False, since, checkpoints)


def test_an_id_depends_on_the_checkpoint_before_the_event_and_not_on_how_batches_are_cut() -> None:
    whole = list(event_ids(a_batch("1112", "_first", (2, "c2"), (4, "c4")), "f"))
    assert len(set(whole)) == 4
    assert list(event_ids(a_batch("11", "_first", (2, "c2")), "f")) == whole[:2]
    assert list(event_ids(a_batch("12", "c2", (2, "c4")), "f")) == whole[2:]
    assert not {*event_ids(a_batch("11", "_first", (2, "c2")), "another")} & {*whole}


@pytest.mark.parametrize("since", ["_last", ""])
def test_ids_of_what_began_at_an_unknown_place_differ_from_run_to_run(since: str) -> None:
    first, later = (list(event_ids(a_batch("11", since, (2, end)), "f")) for end in ("c2", "c9"))
    assert not {*first} & {*later}


def test_a_secret_in_the_address_of_a_feed_is_not_published() -> None:
    assert source_of("https://me:secret@host:1/feed?code=secret#x") == "https://host:1/feed"


def _a_text(file: Path) -> None:
    file.write_text("no database" * 1000)


@pytest.mark.parametrize("spoil", [_a_text, Path.mkdir])
def test_a_state_that_cannot_be_used_is_a_sentence(
    api: ApiProcess, topic: str, tmp_path: Path, spoil: Callable[[Path], object]
) -> None:
    spoil(tmp_path / "s.db")
    read = run(api, "read", topic, "--state", str(tmp_path / "s.db"))
    assert (read.returncode, read.stderr.count("\n"), "s.db" in read.stderr) == (2, 1, True)


def test_a_wrong_start_does_not_spoil_the_state(api: ApiProcess, topic: str, tmp_path: Path) -> None:
    publish(api, topic, range(2))
    words = ("read", topic, "--state", str(tmp_path / "s.db"))
    assert run(api, *words, "--from", "abc").returncode == 1
    assert ids(run(api, *words).stdout) == ["0", "1"]


def test_cursors_are_kept_under_a_name_where_a_feed_has_several_addresses(api: ApiProcess, topic: str, tmp_path: Path) -> None:
    publish(api, topic, range(2))
    words = ("--state", str(tmp_path / "s.db"), "--name", "mine")
    assert ids(run(api, "read", topic, *words).stdout) == ["0", "1"]
    assert run(api, "read", f"http://localhost:{api.port}/feeds/{topic}", *words).stdout == ""
    assert ids(run(api, "read", f"http://127.0.0.1:{api.port}/feeds/{topic}/", *words[:2]).stdout) == ["0", "1"]
    assert run(api, "read", topic, *words[:2]).stdout == ""
    assert (run(api, "read", topic, *words[2:]).returncode, run(api, "read", topic, *words[:3], "").returncode) == (1, 1)


def test_payloads_that_are_no_cloudevents_become_the_data_of_one() -> None:
    headers = {"ce_id": "7", "ce_type": "order", "content-type": "application/vnd.x+json", "traceparent": "00-1", "x-y": "z"}
    headers |= {"data": "x", "ce_data": "x", "ce_my_name": "x", "ce_empty": ""}
    made = json.loads(as_cloudevent(FeedEvent("3", b'{"n":1.50}', headers), "copy", "http://x/f", "a1"))
    assert made == {
        "specversion": "1.0",
        "id": "7",
        "source": "http://x/f",
        "type": "order",
        "datacontenttype": "application/vnd.x+json",
        "partitionkey": "http://x/f#3",
        "traceparent": "00-1",
        "data": {"n": 1.5},
    }
    assert b'"data":{"n":1.50}}' in as_cloudevent(FeedEvent("3", b'{"n":1.50}', headers), "copy", "http://x/f", "a1")
    text = json.loads(as_cloudevent(FeedEvent("3", b'"hello"'), "ns:copy", "http://x/f", "a1"))
    assert (text["id"], text["data"], text["datacontenttype"], text["type"]) == ("a1", "hello", "text/plain", "copy")
    for raw in (b"[1,2.50]", b"7", b"true"):
        value = json.loads(as_cloudevent(FeedEvent("3", raw), "copy", "http://x/f", "a1"))
        assert (value["data"], value["datacontenttype"]) == (json.loads(raw), "application/json")


def test_partitions_are_shown_and_grow(api: ApiProcess, topic: str) -> None:
    assert run(api, "partitions", topic).stdout.splitlines()[1].split() == ["1", "open", "-", "-"]
    closed = run(api, "partitions", topic, "--close", "2").stdout.splitlines()[1:]
    assert [line.split() for line in closed] == [["1", "closed", "-", "-"], ["2", "open", "1", "-"], ["3", "open", "1", "-"]]
    spread = json.loads(run(api, "partitions", topic, "--redistribute", "4", "--json").stdout)
    assert [one["cursorFromPartitions"] for one in spread["partitions"]] == [["2", "1"], ["3", "1"], ["2", "1"], ["3", "1"]]
    for words in (("--close", "3"), ("--close", "8", "--redistribute", "8")):
        refused = run(api, "partitions", topic, *words)
        assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (1, "", 1)


def test_cursor_sets_are_shown_and_forgotten(api: ApiProcess, topic: str) -> None:
    assert run(api, "cursors", topic).stdout == "nobody keeps cursors here\n"
    publish(api, topic, range(2))
    assert api.call("GET", f"/feeds/{topic}?n=1&cursor0=_first&cursorset=mine").status == 200
    assert "mine" in run(api, "cursors", topic).stdout
    assert json.loads(run(api, "cursors", topic, "--json").stdout)["cursors"][0]["lag"] == 2
    assert run(api, "cursors", topic, "--delete", "mine").stdout == "cursor set mine is gone\n"
    assert run(api, "cursors", topic, "--delete", "mine").returncode == 1
