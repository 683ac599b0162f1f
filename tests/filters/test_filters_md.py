"""FILTERS.md tells the truth: every example in it is run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tidings.errors import FilterSyntaxError
from tidings.events.model import Event
from tidings.filters import Filter, explain, matches, parse
from tidings.filters.conversion import convert
from tidings.filters.dialects import DIALECTS

PAGE = (Path(__file__).parents[2] / "FILTERS.md").read_text("utf-8")
VERDICTS = ("holds", "fails", "refused")
BLOCKS: list[tuple[str, str]] = re.findall(r"^```([\w-]+(?: \w+)?)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def the_event() -> Event:
    text = next(block for name, block in BLOCKS if name == "json event")
    attributes = json.loads(text)
    del attributes["data"]
    return Event(attributes, re.search(r'"data": (\{.*\})\s*\}', text, re.DOTALL)[1].encode())  # type: ignore[index]


def examples(verdict: str) -> list[tuple[str, str]]:
    """(dialect, example) of every line in a block of this verdict."""
    return [(name.split()[0], line) for name, block in BLOCKS if name.split()[1:] == [verdict] for line in block.splitlines()]


def read(dialect: str, example: str) -> Filter:
    return parse(dialect, example if dialect in ("where", "cesql") else json.loads(example))


@pytest.mark.parametrize(("dialect", "example"), examples("holds"))
def test_the_page_says_it_holds(dialect: str, example: str) -> None:
    assert matches(read(dialect, example), the_event())


@pytest.mark.parametrize(("dialect", "example"), examples("fails"))
def test_the_page_says_it_does_not_hold(dialect: str, example: str) -> None:
    assert not matches(read(dialect, example), the_event())


@pytest.mark.parametrize(("dialect", "example"), examples("refused"))
def test_the_page_says_it_is_refused_and_where(dialect: str, example: str) -> None:
    text, _, place = example.rpartition("|")
    with pytest.raises(FilterSyntaxError) as told:
        read(dialect, text.rstrip())
    assert told.value.at == place.strip()


@pytest.mark.parametrize("example", [block for name, block in BLOCKS if name == "explain"])
def test_the_page_shows_the_explanation(example: str) -> None:
    text, told = example.split("\n---\n")
    assert str(explain(parse("where", text), the_event())) == told.rstrip("\n")


def test_the_page_shows_conversions() -> None:
    (block,) = (block for name, block in BLOCKS if name == "conversion")
    for example in block.rstrip("\n").split("\n\n"):
        (source, raw), (target, said) = ([part.strip() for part in line.split("|", 1)] for line in example.splitlines())
        written = convert(source, raw, target).filter
        assert written == (said if isinstance(written, str) else json.loads(said))


def test_every_kind_of_example_is_on_the_page() -> None:
    kinds = {name for name, _ in BLOCKS}
    assert {"json event", "explain", "cloudevents holds"} <= kinds
    assert {f"{dialect} holds" for dialect in DIALECTS} <= kinds
    assert {f"{dialect} {verdict}" for dialect in ("where", "cesql", "eventbridge") for verdict in VERDICTS} <= kinds
    assert kinds <= {
        "json event",
        "explain",
        "conversion",
        *(f"{dialect} {verdict}" for dialect in DIALECTS for verdict in VERDICTS),
    }
