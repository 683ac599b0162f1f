"""Log lines as text and JSON, without secrets."""

from __future__ import annotations

import io
import json
import logging
import os
from collections.abc import Iterator

import pytest

from tidings.config import ObserveSettings
from tidings.errors import Misconfigured
from tidings.observe import log_lines


@pytest.fixture(autouse=True)
def _own_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level


def logged(form: str, *args: object, level: str = "info", **extra: object) -> str:
    out = io.StringIO()
    log_lines.set_up(ObserveSettings(form, level), "api", out)
    logging.getLogger("tidings.test").info(*args, **extra)  # type: ignore[arg-type]
    return out.getvalue()


def test_json_lines_carry_part_level_and_extras() -> None:
    line = json.loads(logged("json", "took %d ms", 5, extra={"topic": "orders", "count": 3}))
    assert (line["part"], line["level"], line["message"]) == ("api", "info", "took 5 ms")
    assert (line["topic"], line["count"]) == ("orders", 3)


def test_a_stack_stays_in_its_json_line() -> None:
    try:
        raise ValueError("boom")
    except ValueError:
        text = logged("json", "failed", exc_info=True)
    assert text.count("\n") == 1
    assert "ValueError: boom" in json.loads(text)["stack"]


def test_text_lines_are_short() -> None:
    assert logged("text", "hello").split(" ", 1)[1] == "hello\n"


def test_auto_is_json_where_there_is_no_terminal() -> None:
    assert logged("auto", "hello").startswith("{")


def test_lines_below_the_level_are_left_out() -> None:
    assert logged("text", "hello", level="warning") == ""


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("authorization: Bearer abc.DEF-123", "authorization: Bearer ***"),
        ("GET /x?access_token=abc123&y=1", "GET /x?access_token=***&y=1"),
        ("https://user:pa55@example.org/in", "https://user:***@example.org/in"),
        ("{'api_key': 'abc'}", "{'api_key': '***'}"),
        ("the token was refused", "the token was refused"),
        ("order 17 at 0-42", "order 17 at 0-42"),
    ],
)
def test_secrets_are_blotted_out(text: str, clean: str) -> None:
    assert log_lines.without_secrets(text) == clean
    assert clean in logged("text", text)
    assert json.loads(logged("json", text))["message"] == clean


@pytest.mark.parametrize("settings", [ObserveSettings("xml", "info"), ObserveSettings("text", "loud")])
def test_unknown_words_are_refused(settings: ObserveSettings) -> None:
    with pytest.raises(Misconfigured):
        log_lines.set_up(settings, "api", io.StringIO())


def test_a_pipe_that_nobody_reads_drops_lines_and_tells_how_many_afterwards() -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    out = os.fdopen(writer, "w")
    log_lines.set_up(ObserveSettings("json", "info"), "api", out)
    for n in range(1000):
        logging.getLogger("tidings").warning("%d %s", n, "x" * 1000)
    with os.fdopen(reader, "rb") as source:
        os.read(source.fileno(), 1 << 20)
        logging.getLogger("tidings").warning("after it")
        out.close()
        said = source.read().decode()
    assert "log lines were dropped here" in said
    assert json.loads(said.splitlines()[-1])["message"] == "after it"
