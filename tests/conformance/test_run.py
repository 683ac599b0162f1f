"""The runner of published cases: what it prints and how it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance.run import ROOT, failure, main
from tests.conformance.suites import Case


def a_file(folder: Path, *tests: dict[str, object]) -> str:
    file = folder / "cases.json"
    file.write_text(json.dumps({"tests": tests}), "utf-8")
    return str(file)


GOOD = {"name": "good", "selector": "$.a", "document": {"a": 1}, "result": [1]}
BAD = {"name": "bad", "selector": "$.a", "document": {"a": 1}, "result": [2]}
REFUSED = {"name": "refused", "selector": "$.", "invalid_selector": True}
ACCEPTED = {"name": "accepted", "selector": "$.a", "invalid_selector": True}
BROKEN = {"name": "broken", "selector": "$[", "document": {}, "result": []}


def test_when_all_pass_the_status_is_zero(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["jsonpath", a_file(tmp_path, GOOD, REFUSED)]) == 0
    assert capsys.readouterr().out == "2 passed, 0 failed\n"


def test_each_failure_is_a_line_with_what_was_expected_and_what_came(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["jsonpath", a_file(tmp_path, GOOD, BAD, ACCEPTED, BROKEN)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "failed bad: expected [2], got [1]"
    assert lines[1] == "failed accepted: expected 'refused', got 'accepted'"
    assert lines[2].startswith("failed broken: expected an answer, got FilterSyntaxError")
    assert lines[3:] == ["1 passed, 3 failed"]


def test_one_of_several_results_is_enough(tmp_path: Path) -> None:
    either = {"name": "either", "selector": "$.*", "document": {"a": 1}, "results": [[2], [1]]}
    assert main(["jsonpath", a_file(tmp_path, either)]) == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "usage"),
        (["jsonpath"], "usage"),
        (["nothing", "x.json"], "There is no suite 'nothing'"),
        (["jsonpath", "nowhere.json"], "There is no file nowhere.json"),
        (["jsonpath", __file__], "cannot be read as a file of this suite"),
    ],
)
def test_what_cannot_be_run_is_a_sentence_and_status_two(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert said in capsys.readouterr().err


def test_a_case_that_raises_has_failed() -> None:
    def check() -> None:
        raise ZeroDivisionError("by zero")

    assert failure(Case("x", check)) == "failed x: expected an answer, got ZeroDivisionError: by zero"


@pytest.mark.parametrize("how", [["tests/conformance/run.py"], ["-m", "tests.conformance.run"]])
def test_it_runs_as_a_script_and_as_a_module(how: list[str], tmp_path: Path) -> None:
    command = [sys.executable, *how, "jsonpath", a_file(tmp_path, GOOD)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (0, "1 passed, 0 failed\n"), run.stderr
