"""Runs files of published test cases: `python tests/conformance/run.py SUITE FILE…`; a folder stands for the files in it.

Prints a line for each case that failed and ends with `N passed, M failed`. The exit status is 0 only when all passed, 1 when
some failed, 2 when a file cannot be read or holds no case; the other files are run all the same.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TypeAlias

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tests.conformance.suites import Case, NotThisFormat  # noqa: E402

Cases: TypeAlias = Callable[[Path], Iterator[Case]]

SUITES = ("horizon", "hermes", "cesql", "jsonpath")
USAGE = f"usage: python tests/conformance/run.py SUITE FILE…\nSUITE is one of {', '.join(SUITES)}."
SUFFIXES = (".json", ".yaml", ".yml")
_SHOWN = 400


class NothingToRun(Exception):
    """What was asked for cannot be run; the message is a sentence."""


def main(arguments: Sequence[str]) -> int:
    try:
        cases, files = asked_for(arguments)
    except NothingToRun as reason:
        print(reason, file=sys.stderr)
        return 2
    found, problems = every_case(files, cases)
    for problem in problems:
        print(problem, file=sys.stderr)
    failures = [line for case in found if (line := failure(case))]
    for line in failures:
        print(line)
    if found:
        print(f"{len(found) - len(failures)} passed, {len(failures)} failed")
    return 2 if problems else int(bool(failures))


def asked_for(arguments: Sequence[str]) -> tuple[Cases, list[Path]]:
    """The suite and the files that the arguments name."""
    if len(arguments) < 2:
        raise NothingToRun(USAGE)
    return suite_called(arguments[0]), [file for given in arguments[1:] for file in files_at(Path(given))]


def files_at(given: Path) -> list[Path]:
    """The file itself, or what may hold cases in a folder; a schema beside them holds none."""
    if not given.is_dir():
        return [given]
    found = [file for file in sorted(given.iterdir()) if file.suffix in SUFFIXES and ".schema." not in file.name]
    if not found:
        raise NothingToRun(f"There is no file of cases in {given}.")
    return found


def every_case(files: Sequence[Path], cases: Cases) -> tuple[list[Case], list[NothingToRun]]:
    """The cases of all files, in order, and what is wrong with the files that cannot be run."""
    found: list[Case] = []
    problems: list[NothingToRun] = []
    for file in files:
        try:
            found += cases_of(file, cases)
        except NothingToRun as reason:
            problems.append(reason)
    return found, problems


def suite_called(name: str) -> Cases:
    if name not in SUITES:
        raise NothingToRun(f"There is no suite {name!r}; there are {', '.join(SUITES)}.")
    try:
        cases: Cases = import_module(f"tests.conformance.suites.{name}").cases
    except ModuleNotFoundError as error:
        raise NothingToRun(f"The suite {name} cannot be loaded: {error}.") from error
    return cases


def cases_of(file: Path, cases: Cases) -> list[Case]:
    if not file.is_file():
        raise NothingToRun(f"There is no file {file}.")
    try:
        found = list(cases(file))
    except (NotThisFormat, ValueError, LookupError, TypeError, AttributeError, RecursionError, OSError) as error:
        raise NothingToRun(f"{file} cannot be read as a file of this suite: {told(error)}.") from error
    if not found:
        raise NothingToRun(f"{file} holds no case of this suite.")
    return found


def failure(case: Case) -> str | None:
    """The line that says how the case failed; None when it passed."""
    try:
        difference = case.check()
    except Exception as error:  # a case that raises has failed; the others go on
        return f"failed {one_line(case.id)}: expected an answer, got {told(error)}"
    if difference is None:
        return None
    expected, got = difference
    return f"failed {one_line(case.id)}: expected {shown(expected)}, got {shown(got)}"


def shown(value: object) -> str:
    """The value on one line of bounded length."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def told(error: BaseException) -> str:
    name = type(error).__name__
    return one_line(f"{name}: {error}") if str(error) else name


def one_line(text: str) -> str:
    """The text on one line that can be printed: a case may be called by half a surrogate pair."""
    return " ".join(text.split()).encode("utf-8", "backslashreplace").decode()


if __name__ == "__main__":
    # A terminal may know no Unicode at all.
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    sys.exit(main(sys.argv[1:]))
