"""Why, or why not: the smallest set of conditions that decided, with the values found."""

from __future__ import annotations

import json

import pytest

from tests.builders import an_event
from tidings.filters import explain, parse, printed

EVENT = an_event(b'{"total":{"amount":50.5},"region":"US","tags":[1,2],"code":null}', subject="eu-1")


@pytest.mark.parametrize(
    ("text", "holds", "because"),
    [
        ("total.amount >= 100", False, ["total.amount >= 100"]),
        ('total.amount >= 100 and region = "US"', False, ["total.amount >= 100"]),
        ('total.amount >= 10 and region = "US"', True, ["total.amount >= 10", 'region = "US"']),
        ('region = "EU" or region = "US"', True, ['region = "US"']),
        ('region = "EU" or region = "UK"', False, ['region = "EU"', 'region = "UK"']),
        ('(region = "EU" or region = "UK") and total.amount > 60', False, ["total.amount > 60"]),
        ('not (region = "US" or total.amount > 60)', False, ['region = "US"']),
        ('not (region = "EU" or total.amount > 60)', True, ['region = "EU"', "total.amount > 60"]),
        ("absent exists", False, ["absent exists"]),
        ("false", False, ["false"]),
    ],
)
def test_the_causes_are_the_fewest_conditions_that_decided(text: str, holds: bool, because: list[str]) -> None:
    told = explain(parse("where", text), EVENT)
    assert told.holds is holds
    assert [printed(cause.filter) for cause in told.causes] == because


def test_the_tree_shows_every_condition_with_what_it_found() -> None:
    told = explain(parse("where", "total.amount >= 100 and not (tags exists or code = null) and @absent = 1"), EVENT).as_json()
    assert told == {
        "matches": False,
        "because": [{"condition": "total.amount >= 100", "holds": False, "found": 50.5}],
        "tree": {
            "holds": False,
            "all": [
                {"condition": "total.amount >= 100", "holds": False, "found": 50.5},
                {
                    "holds": False,
                    "not": {
                        "holds": True,
                        "any": [
                            {"condition": "tags exists", "holds": True, "found": "an array of 2"},
                            {"condition": "code = null", "holds": True, "found": None},
                        ],
                    },
                },
                {"condition": "@absent = 1", "holds": False, "missing": True},
            ],
        },
    }


def test_the_text_names_the_verdict_and_its_causes() -> None:
    assert str(explain(parse("where", 'total.amount >= 100 or region in ("EU", "UK")'), EVENT)) == (
        "no match, because\n"
        "  total.amount >= 100 does not hold: found 50.5\n"
        '  region in ("EU", "UK") does not hold: found \'US\''
    )
    assert (
        str(explain(parse("where", "absent is missing"), EVENT))
        == "match, because\n  absent exists does not hold: found nothing"
    )


@pytest.mark.parametrize(
    "data", [b'{"a":1e400}', b'{"a":%s}' % (b"9" * 5000), b'{"a":"%s"}' % (b"x" * 10_000), b'{"a":{"b":1}}']
)
def test_what_was_found_is_shown_short_and_as_json(data: bytes) -> None:
    told = explain(parse("where", "a = 1"), an_event(data))
    assert len(json.dumps(told.as_json())) < 1000
    assert len(str(told)) < 500
