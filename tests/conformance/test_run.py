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


def test_a_folder_stands_for_its_files_of_cases(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a_file(tmp_path, GOOD)
    (tmp_path / "more.json").write_text(json.dumps({"tests": [BAD]}), "utf-8")
    (tmp_path / "cts.schema.json").write_text("{}", "utf-8")
    (tmp_path / "README.md").write_text("no cases", "utf-8")
    assert main(["jsonpath", str(tmp_path)]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "1 passed, 1 failed"


def test_a_file_that_cannot_be_run_is_told_and_the_others_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = tmp_path / "empty.json"
    empty.write_text('{"tests": []}', "utf-8")
    assert main(["jsonpath", str(empty), a_file(tmp_path, GOOD)]) == 2
    said = capsys.readouterr()
    assert said.out == "1 passed, 0 failed\n"
    assert "empty.json holds no case of this suite" in said.err


@pytest.mark.parametrize(
    ("suite", "document", "last"),
    [
        ("jsonpath", {"tests": [GOOD, 5, {"selector": "$"}, {"name": "x\ud800\ny"}]}, "1 passed, 3 failed"),
        ("cesql", {"tests": [None, {"name": "no expression"}, {"expression": "1 = 1", "result": True}]}, "1 passed, 2 failed"),
        ("hermes", {"vectors": [{"filters": [], "expected": True}, {"filters": 5}, [], {"schema": "x"}]}, "1 passed, 3 failed"),
        ("horizon", {"filter_vectors": [{"data": {}, "expected": {"deliver": True}}, {}, "x"]}, "1 passed, 2 failed"),
        ("horizon", {"parse_vectors": [{"trigger": 5, "expected": {"result": "REJECTED"}}, {}]}, "1 passed, 1 failed"),
        ("horizon", {"scope_merge_vectors": [{"expected": None}, {"scopes": [5]}]}, "1 passed, 1 failed"),
        ("horizon", {"event_field_validation_vectors": [{"field": "id"}]}, "0 passed, 1 failed"),
    ],
)
def test_a_case_that_lacks_something_fails_alone(
    suite: str, document: object, last: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "cases.json"
    file.write_text(json.dumps(document), "utf-8")
    assert main([suite, str(file)]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == last


@pytest.mark.parametrize(("matcher", "status"), [("(?!x).*", 0), ("(?=x).*", 1), ("(", 1)])
def test_expressions_of_java_are_tried(matcher: str, status: int, tmp_path: Path) -> None:
    file = tmp_path / "cases.json"
    chain = [{"type": "jsonpath", "path": "$.a", "matcher": matcher}]
    file.write_text(json.dumps({"vectors": [{"filters": chain, "message": {"a": "y"}, "expected": True}]}), "utf-8")
    assert main(["hermes", str(file)]) == status
    selection = {"advancedSelectionFilter": {"rx": {"field": "a", "value": matcher}}}
    file.write_text(json.dumps({"filter_vectors": [{"trigger": selection, "data": {"a": "y"}, "expected": {"deliver": True}}]}))
    assert main(["horizon", str(file)]) == status


def test_a_message_in_avro_is_read_by_its_schema_and_shows_itself_as_json_to_other_filters(tmp_path: Path) -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "string"}]}
    by_avro, by_json = (
        {"filters": [{"type": kind, "path": path, "matcher": "y"}], "schema": "r", "message": {"a": "y"}, "expected": expected}
        for kind, path, expected in (("avropath", ".a", True), ("jsonpath", "$.a", True))
    )
    file = tmp_path / "cases.json"
    file.write_text(json.dumps({"vectors": [by_avro, by_json], "schemas": {"r": schema, "broken": {"type": 5}}}), "utf-8")
    assert main(["hermes", str(file)]) == 0


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
