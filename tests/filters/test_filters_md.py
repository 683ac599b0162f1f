"""FILTERS.md tells the truth: every example in it is run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tidings.errors import FilterSyntaxError
from tidings.events.model import Event
from tidings.filters import explain, matches, parse

PAGE = (Path(__file__).parents[2] / "FILTERS.md").read_text("utf-8")
BLOCKS: list[tuple[str, str]] = re.findall(r"^```(\w+(?: \w+)?)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def lines(kind: str) -> list[str]:
    return [line for name, block in BLOCKS if name == kind for line in block.splitlines()]


def the_event() -> Event:
    text = next(block for name, block in BLOCKS if name == "json event")
    attributes = json.loads(text)
    del attributes["data"]
    return Event(attributes, re.search(r'"data": (\{.*\})\s*\}', text, re.DOTALL)[1].encode())  # type: ignore[index]


@pytest.mark.parametrize("example", lines("where holds"))
def test_the_page_says_it_holds(example: str) -> None:
    assert matches(parse("where", example), the_event())


@pytest.mark.parametrize("example", lines("where fails"))
def test_the_page_says_it_does_not_hold(example: str) -> None:
    assert not matches(parse("where", example), the_event())


@pytest.mark.parametrize("example", lines("where refused"))
def test_the_page_says_it_is_refused_and_where(example: str) -> None:
    text, _, place = example.rpartition("|")
    with pytest.raises(FilterSyntaxError) as told:
        parse("where", text.rstrip())
    assert told.value.at == place.strip()


@pytest.mark.parametrize("example", lines("cloudevents holds"))
def test_the_page_says_this_json_holds(example: str) -> None:
    assert matches(parse("cloudevents", json.loads(example)), the_event())


@pytest.mark.parametrize("example", [block for name, block in BLOCKS if name == "explain"])
def test_the_page_shows_the_explanation(example: str) -> None:
    text, told = example.split("\n---\n")
    assert str(explain(parse("where", text), the_event())) == told.rstrip("\n")


def test_every_kind_of_example_is_on_the_page() -> None:
    assert {name for name, _ in BLOCKS} == {
        "json event",
        "where holds",
        "where fails",
        "where refused",
        "cloudevents holds",
        "explain",
    }
