"""The filters of the VNG notification API (VNG-12 to VNG-17, VNG-80 to VNG-83)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import an_event
from tidings.errors import FilterSyntaxError
from tidings.filters import matches, parse

EVENT = an_event(b"{}", type="nl.vng.zaken.zaak_gesloten", domain="nl.vng.zaken", empty="", retries=3)

SAMPLE = [
    {
        "any": [
            {
                "all": [
                    {"exact": {"domain": "nl.vng.zaken"}},
                    {
                        "any": [
                            {"exact": {"type": "nl.vng.zaken.status_gewijzigd"}},
                            {"exact": {"type": "nl.vng.zaken.zaak_gesloten"}},
                        ]
                    },
                ]
            },
            {"exact": {"domain": "nl.vng.documenten", "vertrouwelijkheid": "normaal"}},
        ]
    }
]


@pytest.mark.parametrize(
    "raw",
    [
        [],
        SAMPLE,
        {"exact": {"Domain": "nl.vng.zaken"}},
        [{"exact": {}}],
        [{"exact": {"empty": ""}}],
        [{"prefix": {"empty": ""}}],
        [{"suffix": {"EMPTY": ""}}],
        [
            {
                "prefix": {"domain": "nl."},
            },
            {"suffix": {"type": "gesloten"}},
        ],
        [{"exact": {"retries": "3"}}],
        [{"not": {"exact": {"attribute": "type", "value": "x"}}}],
        [{"not": {"exact": {"data": ""}}}],
    ],
)
def test_it_holds(raw: Any) -> None:
    assert matches(parse("vng", raw), EVENT)


@pytest.mark.parametrize(
    "raw",
    [
        [{"exact": {"domain": "NL.vng.zaken"}}],
        [{"prefix": {"domain": ""}}],
        [{"suffix": {"domain": ""}}],
        [{"exact": {"absent": ""}}],
        [{"exact": {"data": "{}"}}],
        [{"exact": {"data_base64": ""}}],
        [{"exact": {"domain.x": "y"}}],
        [{"exact": {"domain": "nl.vng.zaken", "retries": "4"}}],
        [{"exact": {"domain": "nl.vng.zaken"}}, {"exact": {"domain": "x"}}],
    ],
)
def test_it_does_not_hold(raw: Any) -> None:
    assert not matches(parse("vng", raw), EVENT)


@pytest.mark.parametrize(
    ("raw", "at"),
    [
        ("exact", "filters"),
        ([{}], "filters[0]"),
        ([{"exact": {}, "not": {}}], "filters[0]"),
        ([{"sql": "TRUE"}], "filters[0].sql"),
        ([{"all": []}], "filters[0].all"),
        ([{"any": {}}], "filters[0].any"),
        ([{"not": [{"exact": {}}]}], "filters[0].not"),
        ([{"all": [{"exact": {"type": 5}}]}], "filters[0].all[0].exact.type"),
        ([{"exact": None}], "filters[0].exact"),
        ([{"exact": {"type": "\ud800"}}], "filters[0].exact.type"),
    ],
)
def test_it_is_refused_with_its_place(raw: Any, at: str) -> None:
    with pytest.raises(FilterSyntaxError) as told:
        parse("vng", raw)
    assert told.value.at == at
    assert told.value.expected


def test_what_is_too_complex_is_refused() -> None:
    deep: Any = {"exact": {}}
    for _ in range(32):
        deep = {"not": deep}
    with pytest.raises(FilterSyntaxError, match="too complex"):
        parse("vng", [deep])
    parse("vng", [deep["not"]])
    with pytest.raises(FilterSyntaxError, match="too complex"):
        parse("vng", [{"exact": {}}] * 501)
