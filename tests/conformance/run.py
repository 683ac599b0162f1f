"""Runs files of published test cases: `python tests/conformance/run.py SUITE FILE…`.

Prints a line for each case that failed and ends with `N passed, M failed`. The exit status is 0 only when all passed, 1 when
some failed, 2 when there was nothing to run.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tests.conformance.suites import Case, NotThisFormat  # noqa: E402

SUITES = ("horizon", "hermes", "cesql", "jsonpath")
USAGE = f"usage: python tests/conformance/run.py SUITE FILE…\nSUITE is one of {', '.join(SUITES)}."
_SHOWN = 400


class NothingToRun(Exception):
    """What was asked for cannot be run; the message is a sentence."""


def main(arguments: Sequence[str]) -> int:
    try:
        found = list(every_case(arguments))
    except NothingToRun as reason:
        print(reason, file=sys.stderr)
        return 2
    failures = [line for case in found if (line := failure(case))]
    for line in failures:
        print(line)
    print(f"{len(found) - len(failures)} passed, {len(failures)} failed")
    return 1 if failures else 0


def every_case(arguments: Sequence[str]) -> Iterator[Case]:
    """The cases of all files named, in order."""
    if len(arguments) < 2:
        raise NothingToRun(USAGE)
    cases = suite_called(arguments[0])
    for file in map(Path, arguments[1:]):
        yield from cases_of(file, cases)


def suite_called(name: str) -> Callable[[Path], Iterator[Case]]:
    if name not in SUITES:
        raise NothingToRun(f"There is no suite {name!r}; there are {', '.join(SUITES)}.")
    try:
        cases: Callable[[Path], Iterator[Case]] = import_module(f"tests.conformance.suites.{name}").cases
    except ModuleNotFoundError as error:
        raise NothingToRun(f"The suite {name} cannot be loaded: {error}.") from error
    return cases


def cases_of(file: Path, cases: Callable[[Path], Iterator[Case]]) -> list[Case]:
    if not file.is_file():
        raise NothingToRun(f"There is no file {file}.")
    try:
        found = list(cases(file))
    except (NotThisFormat, ValueError, LookupError, TypeError, AttributeError, OSError) as error:
        raise NothingToRun(f"{file} cannot be read as a file of this suite: {told(error)}.") from error
    if not found:
        raise NothingToRun(f"{file} holds no case of this suite.")
    return found


def failure(case: Case) -> str | None:
    """The line that says how the case failed; None when it passed."""
    try:
        difference = case.check()
    except Exception as error:  # a case that raises has failed; the others go on
        return f"failed {case.id}: expected an answer, got {told(error)}"
    if difference is None:
        return None
    expected, got = difference
    return f"failed {case.id}: expected {shown(expected)}, got {shown(got)}"


def shown(value: object) -> str:
    """The value on one line of bounded length."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def told(error: BaseException) -> str:
    name = type(error).__name__
    return " ".join(f"{name}: {error}".split()) if str(error) else name


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
