"""What commands say of bad input is written for people."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.api_process import an_api
from tests.messages import machine_words
from tidings.cli.root import app

FILES = {
    "deep.yaml": "[" * 40_000,
    "deep.json": "[" * 40_000,
    "open.yaml": "a: [",
    "twice.yaml": "topics: {}\ntopics: {}",
    "merged.yaml": "a: &a {b: 1}\nkind: Rover\nspec: {<<: *a}",
    "long.json": '{"topics": {"a": {"retention": %s}}}' % ("9" * 5000),
    "long.yaml": f"topics: {{a: {{retention: {'9' * 5000}}}}}",
    "infinite.yaml": "topics: {a: {retention: 1e999}}",
    "list.yaml": "[1, 2]",
    "null.json": "null",
    "text.yaml": "x",
    "empty.yaml": "",
    "two.yaml": "topics: {}\n---\ntopics: {}",
    "kind.yaml": "kind: Ship",
    "nokind.yaml": "kind:",
    "rover.yaml": "kind: Rover",
    "broken.json": '{"a": 1,}',
    "nan.json": '{"a": NaN}',
    "wrong.yaml": "topics: {a: {retention: [], maxEventBytes: yes, schema: {pattern: '('}}}",
}
COMMANDS = [
    ["publish", "orders", "{"],
    ["publish", "orders", "[" * 40_000],
    ["filter", "test", "a = ", "{}"],
    ["filter", "test", f"a = {'9' * 5000}", "{}"],
    ["filter", "test", "a = 1", "[" * 40_000],
    ["filter", "test", "a = 1", f'{{"a": {"9" * 5000}}}'],
    ["filter", "test", "--dialect", "nothing", "a = 1", "{}"],
    ["filter", "test", "--dialect", "horizon", '{"eq": null}', "{}"],
    ["topic", "create", "a b"],
    ["topic", "create", "a", "--retention", "soon"],
    ["topic", "create", "a", "--max-event-bytes", "much"],
    ["topic", "create", "a", "--schema", "broken.json"],
    ["topic", "show", "nothing"],
    ["subscription", "policy", "nothing", "--set", "rate"],
    ["subscription", "rewind", "nothing", "--to", "x"],
    ["tail", "orders", "--from", "x"],
]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with an_api(tmp_path_factory.mktemp("api")) as api:
        assert api.call("PUT", "/api/topics/orders", {}).status < 300
        yield f"http://127.0.0.1:{api.port}"


def check(url: str, *words: str) -> None:
    ran = CliRunner().invoke(app, [*words], env={"TIDINGS_URL": url, "COLUMNS": "250"})
    assert ran.exception is None or isinstance(ran.exception, SystemExit), ran.exception
    assert ran.exit_code in (1, 2), (words[:3], ran.output[:500])
    assert machine_words(ran.stderr) is None, ran.stderr[:500]


@pytest.mark.parametrize("name", FILES)
def test_a_bad_file_is_refused_in_words(url: str, name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(FILES[name])
    check(url, "apply", str(tmp_path / name))


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words)[:40])
def test_a_bad_command_is_refused_in_words(url: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken.json").write_text("{")
    monkeypatch.chdir(tmp_path)
    check(url, *words)


@pytest.mark.parametrize("words", [("listen", "--port", "99999"), ("serve", "--port", "70000"), ("api", "--port", "-1")])
def test_a_port_that_cannot_be_is_refused_in_words(words: tuple[str, ...]) -> None:
    refused = CliRunner().invoke(app, list(words))
    assert refused.exit_code == 2 and "--port" in refused.output
