"""The commands against a really running api part: no Spark, no delivery, but the whole HTTP API."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

from tests.polling import until
from tidings.cli.root import app
from tidings.client.http import HubClient
from tidings.errors import HubUnreachable


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Shell:
    """Runs commands against one hub."""

    def __init__(self, url: str) -> None:
        self.url = url

    def __call__(self, *words: str, stdin: str | None = None) -> Ran:
        result = CliRunner().invoke(app, [*words], input=stdin, env={"TIDINGS_URL": self.url, "COLUMNS": "200"})
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return Ran(result.exit_code, result.stdout, result.stderr)


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    folder = tmp_path_factory.mktemp("hub")
    command = [sys.executable, "-m", "tidings.cli", "api", "--data", str(folder / "data"), "--port", str(port)]
    with (folder / "log").open("wb") as log:
        api = subprocess.Popen(command, stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}"

    def answers() -> bool:
        assert api.poll() is None, (folder / "log").read_text()
        try:
            HubClient(url).get("/health/live")
        except HubUnreachable:
            return False
        return True

    until(answers, lambda: (folder / "log").read_text())
    yield Shell(url)
    api.terminate()
    assert api.wait(30) == 0, (folder / "log").read_text()


@pytest.fixture
def topic(shell: Shell, request: pytest.FixtureRequest) -> str:
    """A topic of this test alone."""
    name = f"topic-{zlib.crc32(request.node.name.encode())}"
    assert shell("topic", "create", name, "--retention", "1h").code == 0
    return name


def test_topics_are_created_listed_shown_and_deleted(shell: Shell, topic: str) -> None:
    assert topic in shell("topic", "list").out
    assert re.search(r"^retention +1h$", shell("topic", "show", topic).out, re.MULTILINE)
    assert shell("topic", "show", topic, "--json").json["retention"] == 3600
    assert shell("--json", "topic", "delete", topic).json == {"deleted": topic}
    gone = shell("topic", "show", topic)
    assert (gone.code, gone.out, gone.err) == (1, "", f"there is no topic {topic}\n")


def test_a_refusal_as_json_is_the_problem(shell: Shell) -> None:
    refused = shell("topic", "show", "nope", "--json")
    assert refused.code == 1
    assert json.loads(refused.err)["code"] == "not-found"


def test_one_event_is_published_and_read_again(shell: Shell, topic: str) -> None:
    assert shell("publish", topic, '{"total": 5}', "--type", "order", "--id", "42", "--json").json == {"accepted": 1}
    (entry,) = [json.loads(line) for line in shell("tail", topic, "--from", "first", "--no-follow", "--json").out.splitlines()]
    assert (entry["event"]["id"], entry["event"]["type"], entry["event"]["data"]) == ("42", "order", {"total": 5})
    assert '{"total": 5}' in shell("tail", topic, "--from", "first", "--count", "1").out


def test_events_come_from_a_file_in_several_requests(shell: Shell, topic: str, tmp_path: Path) -> None:
    file = tmp_path / "events.ndjson"
    file.write_text("".join(f'{{"n": {n}}}\n' for n in range(2300)))
    assert shell("publish", topic, "--file", str(file)).out == "2,300 events accepted\n"
    read = shell("tail", topic, "--from", "first", "--no-follow", "--json").out.splitlines()
    assert [json.loads(line)["event"]["data"]["n"] for line in read] == list(range(2300))


def test_a_bad_line_of_stdin_is_named_and_what_came_before_is_stored(shell: Shell, topic: str) -> None:
    ran = shell("publish", topic, stdin='{"n": 1}\n{"n": 2}\n{broken\n')
    assert ran.code == 1
    assert "line 3" in ran.err and "2 events were accepted" in ran.err
    assert len(shell("tail", topic, "--from", "first", "--no-follow").out.splitlines()) == 2


def test_a_line_that_the_hub_refuses_is_named(shell: Shell, topic: str) -> None:
    ran = shell("publish", topic, "-", stdin='{"n": 1}\n{"specversion": "1.0", "id": ""}\n')
    assert ran.code == 1
    assert "line 2 was refused" in ran.err and "nothing of lines 1 to 2 was stored" in ran.err


@pytest.mark.parametrize("words", [("x{",), ("1", "--file", "x"), ("--file", "/does/not/exist")])
def test_what_cannot_be_published_is_a_sentence(shell: Shell, topic: str, words: tuple[str, ...]) -> None:
    ran = shell("publish", topic, *words)
    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)


def test_a_subscription_is_made_shown_and_deleted(shell: Shell, topic: str) -> None:
    options = ("--where", "total > 5", "--header", "X-Key: 1", "--tries", "3", "--json")
    made = shell("subscribe", topic, "--to", "http://127.0.0.1:9/in", *options)
    name = made.json["name"]
    assert name == f"{topic}-127.0.0.1-9-in"
    assert "total > 5" in shell("subscription", "list").out
    assert "null" not in shell("subscription", "show", name).out
    shown = shell("subscription", "show", name, "--json").json
    assert (shown["delivery"]["tries"], shown["lane"]["state"]) == (3, "active")
    assert shell("unsubscribe", name).code == 0
    assert shell("subscription", "show", name).code == 1


def test_a_subscription_to_parts_of_events_is_made(shell: Shell, topic: str) -> None:
    made = shell("subscribe", topic, "--pull", "--include", "total.amount", "--include", "items.*.name", "--json")
    assert made.json["project"]["include"] == ["total.amount", "items.*.name"]
    made = shell("subscribe", topic, "--pull", "--exclude", "$..secret", "--jsonpath", "--json")
    assert (made.json["project"]["exclude"], made.json["project"]["syntax"]) == (["$..secret"], "jsonpath")
    both = shell("subscribe", topic, "--pull", "--include", "a", "--exclude", "b")
    assert (both.code, "--include or --exclude" in both.err) == (1, True)
    refused = shell("subscribe", topic, "--pull", "--scope", "eu")
    assert (refused.code, "it has none" in refused.err) == (1, True)


def test_creating_a_topic_again_changes_only_what_is_given(shell: Shell, topic: str, tmp_path: Path) -> None:
    name, feed = f"{topic}-again", tmp_path / "feed.json"
    feed.write_text('{"v1Data": "payload", "relationsAsInt": true, "aliases": ["/again/feed"]}')
    words = ("--duplicates", "forever", "--feed", str(feed), "--description", "kept", "--partitions", "2")
    before = shell("topic", "create", name, *words, "--json").json
    assert shell("topic", "create", name, "--retention", "2d").code == 0
    assert shell("topic", "show", name, "--json").json == before | {"retention": 172_800}
    feed.write_text('{"versions": "v1"}')
    assert shell("topic", "create", name, "--feed", str(feed), "--description", "").code == 0
    after = shell("topic", "show", name, "--json").json
    assert (after["description"], after["feed"]) == ("", before["feed"] | {"versions": "v1"})
    anew = shell("topic", "create", name, "--reset", "retention", "--reset", "feed.aliases", "--json").json
    assert (anew["retention"], anew["feed"]["aliases"], anew["duplicates"]) == (None, [], "forever")
    for words in (("--reset", "colour"), ("--retention", "1d", "--reset", "retention"), ("--partitions", "4")):
        refused = shell("topic", "create", name, *words)
        assert refused.code == 1 and refused.err.count("\n") == 1, refused
    feed.write_text("[]")
    assert shell("topic", "create", name, "--feed", str(feed)).code == 1


def test_subscribing_again_changes_only_what_is_given(shell: Shell, topic: str) -> None:
    name, to = f"{topic}-sub", ("--to", "http://127.0.0.1:9/in")
    words = (
        "--where",
        "total > 5",
        "--binary",
        "--header",
        "X-A: 1",
        "--set",
        "rate=5",
        "--description",
        "kept",
        "--tries",
        "3",
    )
    assert shell("subscribe", topic, *to, "--name", name, *words).code == 0
    before = shell("subscription", "show", name, "--json").json
    told = shell("subscribe", topic, *to, "--name", name, "--retention", "1d").out
    assert "it keeps where total > 5; --reset where drops it" in told and "retention" not in told
    after = shell("subscription", "show", name, "--json").json
    assert after | {"lane": None} == before | {"retention": 86_400, "lane": None}
    assert shell("subscribe", topic, "--name", name, "--tries", "4").code == 0
    more = shell("subscription", "show", name, "--json").json
    assert more["delivery"] == after["delivery"] | {"tries": 4}
    refused = shell("subscribe", topic, "--name", f"{name}-new", "--tries", "4")
    assert (refused.code, "one of --to URL, --sse, --pull" in refused.err) == (1, True)
    anew = shell(
        "subscribe", topic, *to, "--name", name, "--reset", "where", "--structured", "--set", "rate=null", "--json"
    ).json
    assert (anew["where"], anew["delivery"]["mode"], anew["delivery"]["rate"], anew["delivery"]["tries"]) == (
        None,
        "structured",
        None,
        4,
    )
    pulled = shell("subscribe", topic, "--pull", "--name", name, "--json").json
    assert (pulled["delivery"]["kind"], pulled["description"]) == ("pull", "kept")


def test_a_delivery_policy_is_chosen_shown_and_changed(shell: Shell, topic: str) -> None:
    options = ("--preset", "hermes", "--set", "rate=5", "--set", "retryFirst=2s", "--name", f"{topic}-paced", "--json")
    made = shell("subscribe", topic, "--to", "http://127.0.0.1:9/in", *options).json["delivery"]
    assert (made["preset"], made["rate"], made["retryFirst"]) == ("hermes", 5, 2)
    changed = shell("subscription", "policy", f"{topic}-paced", "--set", "ordering=strict", "--json").json
    assert (changed["wished"]["rate"], changed["inForce"]["ordering"]) == (5, "strict")
    shown = [line.split() for line in shell("subscription", "policy", f"{topic}-paced").out.splitlines()]
    assert ["ordering", "strict"] in shown and ["rate", "5.0"] in shown and ["retryFirst", "2.0"] in shown
    anew = shell("subscription", "policy", f"{topic}-paced", "--preset", "vng", "--json").json
    assert (anew["wished"]["rate"], anew["inForce"]["preset"]) == (5, "vng")
    told = shell("subscription", "policy", f"{topic}-paced", "--preset", "hermes", "--set", "rate=null").out
    assert "it keeps what was set over the preset: retryFirst, ordering; --set retryFirst=null drops it" in told
    assert shell("subscription", "policy", f"{topic}-paced", "--set", "colour=red").code == 1
    assert shell("subscription", "policy", f"{topic}-paced", "--set", "rate").code == 1
    assert "never opened" in shell("subscription", "breaker", f"{topic}-paced").out
    assert shell("subscription", "disable", f"{topic}-paced", "--json").json == {"applied": False}


def test_a_subscription_is_pushed_or_pulled(shell: Shell, topic: str) -> None:
    assert shell("subscribe", topic).code == 1
    assert shell("subscribe", topic, "--pull", "--to", "http://127.0.0.1:9").code == 1
    assert shell("subscribe", topic, "--pull", "--name", f"{topic}-pull").code == 0


def test_a_bad_filter_is_refused_with_its_place(shell: Shell, topic: str) -> None:
    refused = shell("subscribe", topic, "--to", "http://127.0.0.1:9", "--where", "total >> 5")
    assert refused.code == 1
    assert "column" in refused.err


def test_commands_to_a_lane_are_taken_also_while_delivery_is_away(shell: Shell, topic: str) -> None:
    shell("subscribe", topic, "--pull", "--name", f"{topic}-s")
    assert shell("subscription", "suspend", f"{topic}-s", "--json").json == {"applied": False}
    assert "no dead letters" in shell("subscription", "dead-letters", f"{topic}-s").out
    assert "nothing was delivered" in shell("subscription", "deliveries", f"{topic}-s").out
    assert "no dead letters" in shell("dead-letters", f"{topic}-s").out
    assert shell("dead-letters", f"{topic}-s", "0-1", "--drop", "--json").json == {"applied": False}
    assert "--drop" in shell("dead-letters", f"{topic}-s", "0-1").err
    assert "--dead-letters" in shell("redeliver", f"{topic}-s").err
    assert "nothing was delivered" in shell("deliveries", f"{topic}-s").out


def test_an_event_is_traced_by_its_cursor_or_its_id(shell: Shell, topic: str) -> None:
    for n in (1, 2):
        shell("publish", topic, f'{{"specversion":"1.0","id":"e{n}","source":"/shop","type":"t","data":{{"n":{n}}}}}')
    by_id = shell("trace", topic, "--id", "e2", "--json").json
    assert (by_id["published"]["id"], by_id["routed"], by_id["deliveries"]) == ("e2", False, [])
    assert shell("trace", topic, by_id["cursor"], "--json").json == by_id
    assert "no subscription got it" in shell("trace", topic, by_id["cursor"]).out
    assert (shell("trace", topic, "--id", "e9").code, shell("trace", topic).code) == (1, 1)


def test_deliveries_may_be_chosen_by_state_and_one_must_be_there(shell: Shell, topic: str) -> None:
    shell("subscribe", topic, "--pull", "--name", f"{topic}-d")
    found = shell("deliveries", f"{topic}-d", "--state", "dead", "--state", "expired", "--json").json
    assert (found["deliveries"], found["records"]["limitedBy"]) == ([], "time")
    refused = shell("deliveries", f"{topic}-d", "--state", "lost")
    assert (refused.code, "redelivering" in refused.err) == (1, True)
    assert shell("deliveries", f"{topic}-d", "0-1").code == 1


def test_tracking_is_part_of_the_policy(shell: Shell, topic: str) -> None:
    shell("subscribe", topic, "--to", "http://127.0.0.1:9/in", "--name", f"{topic}-t", "--set", "tracking=discarded")
    assert shell("subscription", "policy", f"{topic}-t", "--json").json["inForce"]["tracking"] == "discarded"
    refused = shell("subscription", "policy", f"{topic}-t", "--set", "tracking=sometimes")
    assert (refused.code, "tracking" in refused.err) == (1, True)


def test_signed_deliveries_get_a_secret_that_can_be_rotated(shell: Shell, topic: str) -> None:
    made = shell("subscribe", topic, "--to", "http://127.0.0.1:9/in", "--name", f"{topic}-signed", "--sign", "v1")
    assert (made.code, "whsec_" in made.out) == (0, True)
    assert "whsec_" not in shell("subscription", "show", f"{topic}-signed").out
    rotated = shell("subscription", "rotate-secret", f"{topic}-signed", "--grace", "1h")
    assert (rotated.code, rotated.out.startswith("whsec_"), "the old key" in rotated.out) == (0, True, True)
    refused = shell("subscribe", topic, "--to", "http://10.0.0.1:9/in", "--name", f"{topic}-asked", "--handshake", "require")
    assert (refused.code, "does not want deliveries" in refused.err) == (1, True)


def test_a_filter_can_be_tried(shell: Shell, tmp_path: Path) -> None:
    assert shell("filter", "test", "total > 5", '{"total": 6}').code == 0
    assert shell("filter", "test", "total > 5", '{"total": 4}').code == 1
    assert shell("filter", "test", "total > 5", "-", "--json", stdin='{"total": 6}').json["matches"] is True
    (tmp_path / "filter").write_text('[{"exact": {"type": "a"}}]')
    event = '{"specversion": "1.0", "id": "1", "source": "/s", "type": "a"}'
    assert shell("filter", "test", str(tmp_path / "filter"), event, "--dialect", "cloudevents").code == 0
    assert "column 9" in shell("filter", "test", "total > >", "{}").err
    assert shell("filter", "test", "total > 5").code == 2


def test_a_filter_is_converted(shell: Shell) -> None:
    text = 'domain = "nl.vng.zaken" and (type = "a" or type = "b")'
    written = [{"exact": {"domain": "nl.vng.zaken"}}, {"any": [{"exact": {"type": "a"}}, {"exact": {"type": "b"}}]}]
    converted = shell("filter", "convert", "--to", "vng", text)
    assert (converted.code, json.loads(converted.out)) == (0, {"all": written})
    back = shell("filter", "convert", "--to", "cesql", "--dialect", "vng", "-", stdin=converted.out)
    assert back.out == "domain = 'nl.vng.zaken' AND (type = 'a' OR type = 'b')\n"
    told = shell("filter", "convert", "--to", "horizon", "total >= 0.10")
    assert (json.loads(told.out), "decided differently at total" in told.err) == (
        {"ge": {"field": "$.total", "value": 0.10}},
        True,
    )
    refused = shell("filter", "convert", "--to", "hermes", "total >= 1")
    assert (refused.code, "this cannot be said in hermes" in refused.err) == (2, True)
    assert shell("filter", "convert", "--to", "nosuch", "true").code == 2


@pytest.mark.parametrize(
    ("filter", "event", "said"),
    [
        ("total > >", "{}", "column 9"),
        ('{"total":', "{}", "the filter is not JSON"),
        ("total > 5", "", "the event is not JSON"),
        ("total > 5", '{"total": NaN}', "NaN is not a number of JSON"),
        ("total > 5", "nowhere.json", "the event cannot be read: there is no such file, found 'nowhere.json'"),
        ("total > 5", '{"specversion": "1.0"}', "the attribute id is required"),
        ("-", "-", "only one of filter and event"),
    ],
)
def test_what_cannot_be_tried_is_told_apart_from_no_match(shell: Shell, filter: str, event: str, said: str) -> None:
    ran = shell("filter", "test", filter, event)
    assert (ran.code, said in ran.err) == (2, True), ran


def test_a_filter_is_tried_on_all_digits_of_a_number(shell: Shell) -> None:
    assert shell("filter", "test", "total = 0.1", '{"total": 0.1}').code == 0
    assert shell("filter", "test", "total = 0.1", '{"total": 0.10000000000000000001}').code == 1
    assert shell("filter", "test", "total > 1", '{"total": 1e400}').code == 0


def test_explain_says_who_gets_an_event_and_why(shell: Shell, topic: str) -> None:
    shell("subscribe", topic, "--to", "http://127.0.0.1:9/in", "--name", f"{topic}-big", "--where", "total > 5")
    shell("publish", topic, '{"total": 3}')
    shell("subscribe", topic, "--to", "http://127.0.0.1:9/in", "--name", f"{topic}-late")
    cursor = json.loads(shell("tail", topic, "--from", "first", "--count", "1", "--json").out.splitlines()[0])["cursor"]

    of_stored = shell("explain", topic, cursor, "--json").json["verdicts"]
    of_possible = shell("explain", topic, '{"total": 6}', "--json").json["verdicts"]
    told = {verdict["subscription"]: verdict for verdict in of_stored}

    assert told[f"{topic}-big"]["gets"] is False
    assert "3" in told[f"{topic}-big"]["why"]
    assert told[f"{topic}-late"]["why"] == "it was created after the event was published"
    assert {v["subscription"] for v in of_possible if v["gets"]} >= {f"{topic}-big", f"{topic}-late"}
    assert "total" in shell("explain", topic, cursor, "--subscription", f"{topic}-big").out
    assert shell("explain", topic, "0-999999").code == 1


def test_apply_shows_a_difference_then_makes_it(shell: Shell, topic: str, tmp_path: Path) -> None:
    file = tmp_path / "hub.yaml"
    file.write_text(f"topics:\n  {topic}: {{description: new words, retention: 1h}}\n  {topic}-b:\n")
    shown = shell("apply", str(file), "--dry-run").out
    assert f'~ topic {topic}\n    - description: ""\n    + description: "new words"\n+ topic {topic}-b\n' in shown
    assert shown.endswith("2 would change, 0 as they should be\n")
    assert shell("topic", "show", f"{topic}-b").code == 1
    assert shell("apply", str(file)).out.endswith("2 changed, 0 as they should be\n")
    assert shell("apply", str(file), "--json").json["unchanged"] == 2


@pytest.mark.parametrize(("name", "text"), [("x.yaml", "a: [1"), ("x.json", "{"), ("x.yaml", "- 1"), ("x.yaml", "topicz: {}")])
def test_a_document_that_cannot_be_applied_is_a_sentence(shell: Shell, tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    ran = shell("apply", str(file))
    assert (ran.code, ran.out) == (1, "")


def test_approvals_are_decided(shell: Shell, topic: str) -> None:
    HubClient(shell.url).put(f"/api/exposures/{topic}", {"approval": "manual"})
    waiting = shell("subscribe", topic, "--pull", "--name", f"{topic}-a")
    assert f"waiting for approval of {topic}" in waiting.out
    assert shell("approve", f"{topic}-a", topic, "--json").json["state"] == "granted"
    assert shell("reject", f"{topic}-a", topic, "--reason", "no").code == 0
    assert "rejected" in shell("approvals").out
    assert shell("approve", "nobody", topic).code == 1


def test_changes_say_who_and_what(shell: Shell, topic: str) -> None:
    assert topic in shell("changes", "--limit", "1000").out
    assert shell("changes", "--json").json["changes"][0]["revision"] == 1


def test_status_is_zero_only_when_every_part_is_ready(shell: Shell) -> None:
    ran = shell("status")
    assert ran.code == 1
    assert "pipeline" in ran.out and "not ready" in ran.out and "routing" in ran.out
    assert shell("status", "--json").json["ready"] is False


def test_no_hub_is_exit_code_3_with_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    ran = Shell(f"http://127.0.0.1:{port}")("status")
    assert ran.code == 3
    assert "tidings serve" in ran.err


def test_wrong_use_is_exit_code_2(shell: Shell) -> None:
    assert shell("topic", "create").code == 2
    assert shell("nonsense").code == 2
    assert shell("--url", "ftp://x", "status").code == 2


def test_every_command_has_a_help_that_mentions_json_and_url(shell: Shell) -> None:
    for words in (["topic", "create"], ["publish"], ["status"], ["subscription", "rewind"], ["apply"], ["doctor"]):
        text = shell(*words, "--help").out
        assert "--json" in text and "--url" in text, words


def test_help_imports_nothing_heavy() -> None:
    heavy = ("pyspark", "fastapi", "sqlalchemy", "sqlite3", "pyarrow", "yaml", "rich", "asyncio")
    script = f"import sys; from tidings.cli.root import app; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "[]\n"
